"""Convolutions of bytes by a kernel of `f32`: its source and sums are numbers that are integers."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import VectorType, f32, i8, i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import Code, ConvolutionKernel, Slot
from byoc_mlir.kernels.costs import ConvolutionRates, rates
from byoc_mlir.kernels.integer_gemm.centring import (
    CentringParameters,
    define_centring,
    define_lines,
)
from byoc_mlir.kernels.integer_gemm.epilogue import Finish, IntegerEpilogue
from byoc_mlir.kernels.integer_gemm.parameters import BytesParameters
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read, words
from byoc_mlir.kernels.vectors import Vectors

T = TypeVar("T")

_ALIGNMENT = 64


@dataclass(frozen=True)
class _Told(Generic[T]):
    """What the code is told before what the kernel is."""

    centring: CentringParameters[T]
    lines: T
    """Those of all images of the source."""
    pixels: T
    outputs: T
    """Those of the result."""
    sums: T
    workspace: T
    """Bytes of the workspace before the sums, and before the kernel's own."""
    weights: T
    """Numbers of the packed weights; scales and offsets are behind them."""
    bytes: BytesParameters[T]


@dataclass(frozen=True)
class ThroughFloats:
    """A convolution of bytes `[N, H, W, C]` to bytes by a kernel of `f32` with channels last."""

    kernel: ConvolutionKernel
    """Its epilogue is nothing."""
    is_signed: bool
    zero_point: int
    """Of the source: what its bytes are, and which stands for 0."""
    epilogue: IntegerEpilogue

    @property
    def packing(self) -> Hashable:
        """What the order of packed weights depends on, beside their shape."""
        return self.kernel.packing

    @property
    def name(self) -> str:
        """What IR and reports call it."""
        return self.kernel.name

    def milliseconds(self, direct: float, threads: int) -> float:
        """About what it takes, see `ConvolutionKernel.milliseconds`."""
        moved = (5 * self._elements[0] + 6 * self._elements[1]) / threads
        converting = moved / rates(ConvolutionRates).transformed_bytes
        return self.kernel.milliseconds(direct, threads) + converting

    @property
    def _elements(self) -> tuple[int, int]:
        """Those of source and result."""
        it = self.kernel.convolution
        source, result = (int(math.prod(one.shape)) for one in (it.source, it.result))
        return source, result

    def workspace_bytes(self, threads: int) -> int:
        """The memory for source and sums of `f32`, and for the kernel."""
        return self._starts[1] + self.kernel.workspace_bytes(threads)

    @property
    def _starts(self) -> tuple[int, int]:
        """Where the sums and the kernel's workspace begin."""
        source, sums = (-(-4 * one // _ALIGNMENT) * _ALIGNMENT for one in self._elements)
        return source, source + sums

    def pack(
        self,
        weights: NDArray[np.int8],
        scales: NDArray[np.float32],
        offsets: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """The weights `[O, I, H, W]` as the kernel reads them, then scales and offsets."""
        packed = self.kernel.pack(weights.astype(np.float32)).reshape(-1)
        return np.concatenate((packed, scales, offsets))

    def code(self, threads: int) -> Code:
        """What computes it: `Slot.WEIGHTS` is what `pack` gives; there is no bias."""
        kernel = self.kernel.code(threads)
        told = words(self._told())
        define = partial(_define, it=self, kernel=kernel, before=len(told))
        return Code(define, (*told, *kernel.words))

    def _told(self) -> _Told[int]:
        it, (sums, workspace) = self.kernel.convolution, self._starts
        images, channels, height, width = map(int, it.source.shape)
        shape = (images, height, width, channels)
        epilogue: BytesParameters[int] = self.epilogue.parameters()  # pyright: ignore
        return _Told(
            CentringParameters[int].of(self.zero_point, shape, (0, 0), (0, 0), channels),
            images * height,
            self._elements[1] // it.outputs,
            it.outputs,
            sums,
            workspace,
            math.prod(self.kernel.weights_shape),
            epilogue,
        )


def _define(module: ModuleBuilder, *, it: ThroughFloats, kernel: Code, before: int) -> str:
    """`void (slots)`: runs one convolution."""
    inner, sign = kernel.define(module), "i8" if it.is_signed else "u8"
    name = f"{inner}_of_{sign}_{it.epilogue.suffix}"
    if module.has(name):
        return name
    centring = define_centring(module, is_signed=it.is_signed, element=f32)
    lines = define_lines(
        module, f"{name}_lines", centring, lambda function, slots: _told(function, slots).centring
    )
    pixels = _define_pixels(module, f"{name}_pixels", it)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    told, workspace = _told(function, slots), function.pointer(slots, Slot.WORKSPACE)
    parameters = function.slot(function.pointer(slots, Slot.PARAMETERS), before)
    given = {
        Slot.WORKSPACE: function.offset(workspace, told.workspace),
        Slot.WEIGHTS: function.pointer(slots, Slot.WEIGHTS),
        Slot.SOURCE: workspace,
        Slot.RESULT: function.offset(workspace, told.sums),
        Slot.PARAMETERS: parameters,
    }
    pointers = function.stack_slots(len(Slot))
    for slot in Slot:
        value = given[slot] if slot in given else function.null()
        function.store(value, function.slot(pointers, slot))
    function.parallel_for(lines, slots, told.lines)
    function.do(inner, pointers)
    function.parallel_for(pixels, slots, told.pixels)
    function.finish()
    return name


def _told(function: FunctionBuilder, slots: SSAValue) -> _Told[SSAValue]:
    return read(function, function.pointer(slots, Slot.PARAMETERS), _Told[SSAValue])


def _define_pixels(module: ModuleBuilder, name: str, it: ThroughFloats) -> str:
    """`void (slots, begin, end)`: the bytes of some pixels, from their sums."""
    lanes = it.kernel.unit.lanes
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    told, vectors = _told(function, slots), Vectors(function, lanes)
    workspace, weights, residual, result = (
        function.pointer(slots, slot)
        for slot in (Slot.WORKSPACE, Slot.WEIGHTS, Slot.RESIDUAL, Slot.RESULT)
    )
    sums, scales = function.offset(workspace, told.sums), function.gep(weights, told.weights)
    offsets = function.gep(scales, told.outputs)
    finish = Finish(function, lanes, it.epilogue, told.bytes)

    def pixel(index: SSAValue) -> None:
        first = function.multiply(function.add(begin, index), told.outputs)

        def vector(number: SSAValue) -> None:
            channel = function.multiply(number, lanes)
            place = function.add(first, channel)
            added = None
            if it.epilogue.residual is not None:
                bytes_ = function.gep(residual, place, i8)
                added = function.load(bytes_, VectorType(i8, [lanes]), 1)
            total, scale, offset = (
                vectors.load(function.gep(base, at))
                for base, at in ((sums, place), (scales, channel), (offsets, channel))
            )
            (value,) = finish.of([(total, scale, offset, added)])
            function.store(value, function.gep(result, place, i8), 1)

        function.loop(function.divide(told.outputs, lanes), vector)

    function.loop(function.subtract(end, begin), pixel)
    function.finish()
    return name
