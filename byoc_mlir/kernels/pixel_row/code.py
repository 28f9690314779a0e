"""Functions of one 1x1 convolution of a row of pixels, on all threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import Slot
from byoc_mlir.kernels.epilogue import Epilogue, float_bits
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import Vectors

T = TypeVar("T")

PREFIX = "byoc_pixel_row"


@dataclass(frozen=True)
class Parameters(Generic[T]):
    """Run-time parameters."""

    pixels: T
    """Number of pixels of all images."""
    inputs: T
    """Number of input channels."""
    blocks: T
    """Number of vectors of output channels."""


def define_pixel_row(module: ModuleBuilder, *, lanes: int, epilogue: Epilogue) -> str:
    """Defines `void (slots)`, which runs one convolution with the arguments of `Slot`.

    Returns its symbol.
    """
    name = f"{PREFIX}_{_suffix(lanes, epilogue)}"
    if module.has(name):
        return name
    pixels = _define_pixels(module, lanes, epilogue)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    function.parallel_for(pixels, slots, _parameters(function, slots).pixels)
    function.finish()
    return name


def _suffix(lanes: int, epilogue: Epilogue) -> str:
    """Returns a symbol suffix that distinguishes functions with different code."""
    limits = f"_{float_bits(epilogue.lower):x}_{float_bits(epilogue.upper):x}"
    return f"{lanes}{epilogue.suffix}{limits}"


def _parameters(function: FunctionBuilder, slots: SSAValue) -> Parameters[SSAValue]:
    return read(function, function.pointer(slots, Slot.PARAMETERS), Parameters[SSAValue])


def _define_pixels(module: ModuleBuilder, lanes: int, epilogue: Epilogue) -> str:
    """Defines `void (slots, begin, end)` for a range of pixels; returns its symbol."""
    name = f"{PREFIX}_pixels_{_suffix(lanes, epilogue)}"
    if module.has(name):
        return name
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    row = _Row(function, slots, _parameters(function, slots), Vectors(function, lanes), epilogue)
    function.loop(
        function.subtract(end, begin), lambda index: row.write(function.add(begin, index))
    )
    function.finish()
    return name


@dataclass(frozen=True)
class _Row:
    """Writer of the loops over a pixel's channels."""

    function: FunctionBuilder
    slots: SSAValue
    parameters: Parameters[SSAValue]
    vectors: Vectors
    epilogue: Epilogue

    def write(self, pixel: SSAValue) -> None:
        """Generates the code of one pixel: a loop over vectors of output channels."""
        function, inputs = self.function, self.parameters.inputs
        source = function.gep(self._pointer(Slot.SOURCE), function.multiply(pixel, inputs))
        first = function.multiply(pixel, self.parameters.blocks)

        def block(index: SSAValue) -> None:
            total = self._total(source, index)
            self._store(total, function.multiply(function.add(first, index), self.vectors.lanes))

        function.loop(self.parameters.blocks, block)

    def _pointer(self, slot: Slot) -> SSAValue:
        return self.function.pointer(self.slots, slot)

    def _total(self, source: SSAValue, index: SSAValue) -> SSAValue:
        """Computes the sums of a vector of outputs over all input channels, with the bias."""
        function, vectors, inputs = self.function, self.vectors, self.parameters.inputs
        panel = function.multiply(function.multiply(index, inputs), vectors.lanes)
        weights = function.gep(self._pointer(Slot.WEIGHTS), panel)
        start = vectors.splat(0.0)
        if self.epilogue.bias:
            channel = function.multiply(index, vectors.lanes)
            start = vectors.load(function.gep(self._pointer(Slot.BIAS), channel))

        def channel_of(number: SSAValue, sums: Sequence[SSAValue]) -> Sequence[SSAValue]:
            row = function.gep(weights, function.multiply(number, vectors.lanes))
            value = vectors.repeated(function.gep(source, number))
            return [vectors.multiply_add(value, vectors.load(row), sums[0])]

        (total,) = function.fold(inputs, (start,), channel_of)
        return total

    def _store(self, total: SSAValue, place: SSAValue) -> None:
        """Stores a vector of results, after the residual and the limits."""
        function, vectors, epilogue = self.function, self.vectors, self.epilogue
        if epilogue.residual:
            address = function.gep(self._pointer(Slot.RESIDUAL), place)
            total = vectors.add(total, vectors.load(address))
        limit = vectors.limited(epilogue.lower, epilogue.upper)
        vectors.store(limit(total), function.gep(self._pointer(Slot.RESULT), place))
