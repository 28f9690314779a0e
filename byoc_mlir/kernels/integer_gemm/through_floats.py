"""Convolutions of bytes by Winograd's algorithm: they are `f32` while tiles are transformed."""

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
from byoc_mlir.kernels.convolution import KernelCode, Slot
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
class _BytesTold(Generic[T]):
    """What the code is told beside what the algorithm is."""

    zero_point: T
    """Of the source."""
    weights: T
    """Numbers of the packed weights; scales and offsets are behind them."""
    outputs: T
    bytes: BytesParameters[T]


@dataclass(frozen=True)
class _Told(Generic[T]):
    """All that the code is told."""

    algorithm: WinogradParameters[T]
    bytes: _BytesTold[T]


@dataclass(frozen=True)
class _Bytes(Pixels):
    """Bytes; what stands in the slot of biases is scales and offsets."""

    is_signed: bool
    """Those of the source."""
    epilogue: IntegerEpilogue

    @property
    def element(self) -> IntegerType:
        return i8

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
        told = read(function, parameters, _Told[SSAValue]).bytes
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
        told = read(function, parameters, _Told[SSAValue]).bytes
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
    """A convolution of bytes `[N, H, W, C]` to bytes by a kernel of `f32` with channels last."""

    kernel: Winograd
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
        return self.kernel.milliseconds(direct, threads)

    @property
    def weight_bytes(self) -> int:
        """The memory of packed weights."""
        return self.kernel.weight_bytes

    def workspace_bytes(self, threads: int) -> int:
        """The memory for the kernel."""
        return self.kernel.workspace_bytes(threads)

    def pack(
        self,
        weights: NDArray[np.int8],
        scales: NDArray[np.float32],
        offsets: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """The weights `[O, I, H, W]` as the kernel reads them, then scales and offsets."""
        packed = self.kernel.pack(weights.astype(np.float32)).reshape(-1)
        return np.concatenate((packed, scales, offsets))

    def code(self, threads: int) -> KernelCode:
        """What computes it: `Slot.WEIGHTS` is what `pack` gives; there is no bias."""
        kernel = self.kernel.code_for(_Bytes(self.is_signed, self.epilogue), threads)
        told = _BytesTold(
            self.zero_point,
            math.prod(self.kernel.weights_shape),
            self.kernel.convolution.outputs,
            self.epilogue.parameters(),
        )
        return KernelCode(partial(_define, kernel=kernel), (*kernel.words, *words(told)))


def _define(module: ModuleBuilder, *, kernel: KernelCode) -> str:
    """`void (slots)`: runs one convolution, with scales and offsets in the slot of biases."""
    inner = kernel.define(module)
    name = f"{inner}_of_bytes"
    if module.has(name):
        return name
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    told = read(function, function.pointer(slots, Slot.PARAMETERS), _Told[SSAValue]).bytes
    scales = function.gep(function.pointer(slots, Slot.WEIGHTS), told.weights)
    pointers = function.stack_slots(len(Slot))
    for slot in Slot:
        value = scales if slot == Slot.BIAS else function.pointer(slots, slot)
        function.store(value, function.slot(pointers, slot))
    function.do(inner, pointers)
    function.finish()
    return name
