"""Int8 convolutions by Winograd's algorithm, with tiles in `f32`."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, VectorType, i8, i32
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID
from byoc_mlir.kernels.convolution import KernelCode, Slot, read_parameters
from byoc_mlir.kernels.integer_gemm.epilogue import Finish, IntegerEpilogue
from byoc_mlir.kernels.integer_gemm.parameters import BytesParameters
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read, words
from byoc_mlir.kernels.vectors import Vectors, broadcast, splat
from byoc_mlir.kernels.winograd.parameters import WinogradParameters
from byoc_mlir.kernels.winograd.pixels import Finishing, Pixels, PixelSource
from byoc_mlir.kernels.winograd.winograd import Winograd

T = TypeVar("T")


@dataclass(frozen=True)
class _BytesParameters(Generic[T]):
    """Run-time parameters for bytes: those that the `f32` algorithm does not have."""

    zero_point: T
    """Zero point of the source."""
    weights: T
    """Elements of the packed weights; scales and offsets follow them."""
    outputs: T
    bytes: BytesParameters[T]


@dataclass(frozen=True)
class _ThroughFloatsParameters(Generic[T]):
    """Run-time parameters: the `f32` algorithm's, then those for bytes."""

    algorithm: WinogradParameters[T]
    bytes: _BytesParameters[T]


@dataclass(frozen=True)
class _Bytes(Pixels):
    """Format of pixels that are bytes; the bias slot holds scales and offsets."""

    element = i8

    is_signed: bool
    """True if the bytes of the source are signed."""
    epilogue: IntegerEpilogue

    @property
    def has_residual(self) -> bool:
        return self.epilogue.residual is not None

    @property
    def of_source(self) -> str:
        return "_i8" if self.is_signed else "_u8"

    @property
    def of_result(self) -> str:
        return f"_{self.epilogue.suffix}"

    def source(self, vectors: Vectors, parameters: SSAValue) -> PixelSource:
        function = vectors.function
        told = read(function, parameters, _ThroughFloatsParameters[SSAValue]).bytes
        extend = llvm.SExtOp if self.is_signed else llvm.ZExtOp

        def zero_point(element: IntegerType) -> SSAValue:
            type_ = VectorType(element, [vectors.lanes])
            number = function.insert(llvm.TruncOp(told.zero_point, element))
            return broadcast(function, number, function.constant(splat(0, type_), type_))

        zeros = zero_point(i32)

        def numbers(bytes_: SSAValue) -> SSAValue:
            integers = function.insert(extend(bytes_, zeros.type))
            centred = function.binary(llvm.SubOp, integers, zeros)
            return function.insert(llvm.SIToFPOp(centred, vectors.type))

        return PixelSource(zero_point(i8), numbers)

    def result(
        self, vectors: Vectors, parameters: SSAValue, biases: SSAValue
    ) -> Callable[[SSAValue], Finishing]:
        function = vectors.function
        told = read(function, parameters, _ThroughFloatsParameters[SSAValue]).bytes
        finish = Finish.told(function, vectors.lanes, self.epilogue, told.bytes)
        offsets = function.gep(biases, told.outputs)

        def of_channels(vector: SSAValue) -> Finishing:
            first = function.multiply(vector, vectors.lanes)
            scale, offset = (vectors.load(function.gep(one, first)) for one in (biases, offsets))

            def finished(total: SSAValue, residual: SSAValue | None) -> SSAValue:
                (bytes_,) = finish.of([(total, scale, offset, residual)])
                return bytes_

            return finished

        return of_channels


@dataclass(frozen=True)
class ThroughFloats:
    """Int8 convolution `[N, H, W, C]`, computed by an `f32` kernel in NHWC."""

    kernel: Winograd
    """Kernel in `f32`, with an empty epilogue."""
    is_signed: bool
    zero_point: int
    """Zero point of the source, whose bytes are signed if `is_signed`."""
    epilogue: IntegerEpilogue

    @property
    def packing(self) -> Hashable:
        """Returns a key of the order of the packed weights, in addition to their shape."""
        return self.kernel.packing

    @property
    def name(self) -> str:
        """Returns the kernel's name in IR and reports."""
        return self.kernel.name

    def milliseconds(self, direct: float, threads: int) -> float:
        """Estimates the run time in milliseconds, as `ConvolutionKernel.milliseconds`."""
        return self.kernel.milliseconds(direct, threads)

    @property
    def weight_bytes(self) -> int:
        """Returns the bytes of the packed weights."""
        return self.kernel.weight_bytes

    def workspace_bytes(self, threads: int) -> int:
        """Returns the bytes of the kernel's workspace."""
        return self.kernel.workspace_bytes(threads)

    def pack(
        self,
        weights: NDArray[np.int8],
        scales: NDArray[np.float32],
        offsets: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """Packs weights `[O, I, H, W]` for the kernel, followed by scales and offsets."""
        packed = self.kernel.pack(weights.astype(np.float32)).reshape(-1)
        return np.concatenate((packed, scales, offsets))

    def code(self, threads: int) -> KernelCode:
        """Returns the code; `Slot.WEIGHTS` holds the result of `pack`, and there is no bias."""
        kernel = self.kernel.code_for(_Bytes(self.is_signed, self.epilogue), threads)
        told = _BytesParameters(
            self.zero_point,
            math.prod(self.kernel.weights_shape),
            self.kernel.convolution.outputs,
            self.epilogue.parameters(),
        )
        return KernelCode(partial(_define, kernel=kernel), (*kernel.words, *words(told)))


def _define(module: ModuleBuilder, *, kernel: KernelCode) -> str:
    """Defines `void (slots)`, which runs one convolution; returns its symbol.

    The function passes the address of scales and offsets in the bias slot.
    """
    inner = kernel.define(module)
    name = f"{inner}_of_bytes"
    if module.has(name):
        return name
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    told = read_parameters(function, slots, _ThroughFloatsParameters[SSAValue]).bytes
    scales = function.gep(function.pointer(slots, Slot.WEIGHTS), told.weights)
    pointers = [scales if slot == Slot.BIAS else function.pointer(slots, slot) for slot in Slot]
    function.do(inner, function.stack_array(pointers))
    function.finish()
    return name
