"""Int8 convolutions in NHWC, as one function for all threads."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import KernelCode, Pair, Slot
from byoc_mlir.kernels.costs import ConvolutionCalibration, calibration
from byoc_mlir.kernels.integer_gemm import NAME
from byoc_mlir.kernels.integer_gemm.centring import (
    SIGN,
    CentringParameters,
    define_centring,
    define_lines,
    padded,
)
from byoc_mlir.kernels.integer_gemm.code import IntegerGemmVariant, define_units
from byoc_mlir.kernels.integer_gemm.epilogue import IntegerEpilogue
from byoc_mlir.kernels.integer_gemm.integer_gemm import IntegerGemm
from byoc_mlir.kernels.integer_gemm.overlapping import LINE_WORDS
from byoc_mlir.kernels.integer_gemm.parameters import IntegerGemmParameters
from byoc_mlir.kernels.integer_gemm.unit import WORD_BYTES, IntegerUnit
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read, words

T = TypeVar("T")

_BEFORE = len(CentringParameters.__dataclass_fields__) + 2
"""Words before the words of `IntegerGemmParameters`."""


@dataclass(frozen=True)
class _ConvolutionParameters(Generic[T]):
    """Run-time parameters of the convolution, which precede the GEMM's."""

    centring: CentringParameters[T]
    lines: T
    """Number of rows of all images, with padding."""
    columns: T
    """Words of each array of per-column values; three such arrays precede the packed weights."""


@dataclass(frozen=True)
class IntegerConvolution:
    """Int8 convolution `[N, H, W, C]`, which multiplies packed pairs of `i16` or groups of
    bytes.
    """

    name: ClassVar[str] = NAME

    unit: IntegerUnit
    shape: tuple[int, int, int, int]
    """Images, rows, pixels and channels of the source."""
    is_signed: bool
    zero_point: int
    """Zero point of the source, whose bytes are signed if `is_signed`."""
    outputs: int
    window: Pair
    strides: Pair
    dilation: Pair
    begins: Pair
    ends: Pair
    epilogue: IntegerEpilogue
    groups: int = 1
    """Number of groups of channels; with several, the channels of each are filled up to whole
    32-bit groups."""
    overlap: float = 1.0
    """Growth factor of overlapping groups, as `IntegerGemm.overlap`."""

    @property
    def _gemm(self) -> IntegerGemm:
        images, *_, channels = self.shape
        return IntegerGemm(
            self.unit,
            images,
            *padded(self.shape, self.begins, self.ends),
            channels,
            self.outputs,
            self.window,
            self.strides,
            self.dilation,
            self.epilogue,
            self.groups,
            is_dense=self._is_dense,
            overlap=self.overlap,
        )

    @property
    def _is_dense(self) -> bool:
        """True if each window row is filled up to whole 32-bit groups, instead of each pixel."""
        return self.groups == self.dilation[1] == 1

    @property
    def packing(self) -> Hashable:
        """Returns a key of the order of the packed weights, in addition to their shape."""
        return self.unit, self.groups, self._is_dense, self._zero_byte

    @property
    def products(self) -> int:
        """Returns the number of MACs."""
        return int(self._gemm.products)

    def milliseconds(self, threads: int) -> float:
        """Estimates the run time in milliseconds, including conversion, and the reading of weights
        from memory.
        """
        moved = self._numbers * (1 + self.unit.left_type.itemsize)
        copying = moved / calibration(ConvolutionCalibration).transformed_bytes
        return (copying + self._gemm.milliseconds(int(self._gemm.rows))) / threads

    @property
    def weight_bytes(self) -> int:
        """Returns the bytes of the packed weights."""
        return round(self._gemm.right_bytes * self.overlap)

    def forms(self, weights: NDArray[np.int8]) -> tuple[IntegerConvolution, ...]:
        """Returns the kernel itself and, if the processor allows, its variant with overlapping
        groups.

        `weights` are `[O, I / groups, H, W]`; they determine how many groups overlap.
        """
        found = self._gemm.overlapping(weights.transpose(2, 3, 1, 0))
        return (self, *(replace(self, unit=one.unit, overlap=one.overlap) for one in found))

    def workspace_bytes(self, threads: int) -> int:
        """Returns the bytes of the converted source; 0 if the source needs no conversion."""
        if self._reads_source:
            return 0
        size = self._numbers * self.unit.left_type.itemsize
        return size + WORD_BYTES  # the last group may end after the source

    @property
    def _numbers(self) -> int:
        """Returns the number of elements of the converted source; 0 if the source needs no
        conversion.
        """
        return int(self._lines * self._gemm.pixels) * self._gemm.left_channels

    @property
    def _reads_source(self) -> bool:
        """True if the code multiplies the source in place, without conversion."""
        is_padded = any((*self.begins, *self.ends))
        is_filled = self._gemm.left_channels == self.shape[3]
        return self.unit.takes_bytes and is_filled and not (self.is_signed or is_padded)

    @property
    def _zero_byte(self) -> int:
        """Returns the byte of operand A that stands for 0."""
        if not self.unit.takes_bytes:
            return 0
        return self.zero_point + SIGN * self.is_signed

    @property
    def _lines(self) -> int:
        """Returns the number of rows to convert."""
        return 0 if self._reads_source else int(self._gemm.images * self._gemm.lines)

    def pack(
        self,
        weights: NDArray[np.int8],
        scales: NDArray[np.float32],
        offsets: NDArray[np.float32],
    ) -> NDArray[np.int32]:
        """Packs the accumulators' initial values, scales and offsets, then the weights `[O, I /
        groups, H, W]`.
        """
        gemm = self._gemm
        packed = gemm.pack(weights.transpose(2, 3, 1, 0)).reshape(-1)
        starts = -self._zero_byte * weights.sum((1, 2, 3), np.int32)
        columns = np.zeros((3, self._told().columns), np.int32)
        columns[0, : gemm.columns] = gemm.in_columns(starts)
        for row, one in zip(columns[1:], (scales, offsets), strict=True):
            row[: gemm.columns] = gemm.in_columns(one).view(np.int32)
        return np.concatenate((columns.reshape(-1), packed.view(np.int32)))

    def code(self, threads: int) -> KernelCode:
        """Returns the code; `Slot.WEIGHTS` holds the result of `pack`, and there is no bias."""
        (variant,) = self._gemm.variants
        define = partial(
            define_convolution,
            variant=variant,
            is_signed=self.is_signed,
            reads_source=self._reads_source,
        )
        return KernelCode(define, (*words(self._told()), *self._gemm.parameters()))

    def _told(self) -> _ConvolutionParameters[int]:
        gemm = self._gemm
        centring = CentringParameters[int].of(
            self.zero_point, self.shape, self.begins, self.ends, gemm.left_channels
        )
        columns = -(-gemm.columns // LINE_WORDS) * LINE_WORDS
        return _ConvolutionParameters(centring, self._lines, columns)


def define_convolution(
    module: ModuleBuilder, *, variant: IntegerGemmVariant, is_signed: bool, reads_source: bool
) -> str:
    """Defines `void (slots)`, which runs one convolution; returns its symbol."""
    kind = "in_place" if reads_source else "i8" if is_signed else "u8"
    name = f"byoc_convolution_{kind}_{variant.name}"
    if module.has(name):
        return name
    left = Slot.SOURCE if reads_source else Slot.WORKSPACE
    units = _define_units(module, f"{name}_units", define_units(module, variant), left)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    told, product = _told(function, slots)
    if not reads_source:
        element = variant.unit.left_number
        centring = define_centring(module, is_signed=is_signed, element=element)
        lines = define_lines(module, f"{name}_lines", centring)
        function.parallel_for(lines, slots, told.lines)
    function.parallel_for(units, slots, function.multiply(product.blocks, product.panels))
    function.finish()
    return name


def _told(
    function: FunctionBuilder, slots: SSAValue
) -> tuple[_ConvolutionParameters[SSAValue], IntegerGemmParameters[SSAValue]]:
    address = function.pointer(slots, Slot.PARAMETERS)
    told = read(function, address, _ConvolutionParameters[SSAValue])
    return told, read(function, function.slot(address, _BEFORE), IntegerGemmParameters[SSAValue])


def _define_units(module: ModuleBuilder, name: str, units: str, left_slot: Slot) -> str:
    """Defines `void (slots, begin, end)` for a range of the GEMM's units; returns its symbol."""
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    told, _ = _told(function, slots)
    parameters = function.slot(function.pointer(slots, Slot.PARAMETERS), _BEFORE)
    left, starts, residual, result = (
        function.pointer(slots, slot)
        for slot in (left_slot, Slot.WEIGHTS, Slot.RESIDUAL, Slot.RESULT)
    )
    scales, offsets, right = (
        function.gep(starts, function.multiply(told.columns, number)) for number in (1, 2, 3)
    )
    columns = (starts, scales, offsets)
    function.do(units, parameters, left, right, *columns, residual, result, begin, end)
    function.finish()
    return name
