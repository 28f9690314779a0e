"""The function of one convolution as an implicit product, on all threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import Slot
from byoc_mlir.kernels.implicit_gemm.micro_kernel import PREFIX, Variant, define_kernel
from byoc_mlir.kernels.implicit_gemm.parameters import Parameters
from byoc_mlir.kernels.implicit_gemm.strips import Strips
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import VectorUnit


def define_implicit_gemm(
    module: ModuleBuilder, *, variant: Variant, strips: Strips, bias: bool
) -> str:
    """`void (slots)`: runs one convolution; `Slot` tells what it is called with.

    Where there is no bias, it writes the address of the zeros behind the weights to its slot.
    """
    name = f"{PREFIX}_{variant.suffix}{strips.suffix}" + "_bias" * bias
    if module.has(name):
        return name
    units = _define_units(module, variant, strips)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    parameters = _parameters(function, slots)
    if not bias:
        zeros = _zeros(function, parameters, function.pointer(slots, Slot.WEIGHTS))
        function.store(zeros, function.slot(slots, Slot.BIAS))
    function.parallel_for(units, slots, function.multiply(parameters.blocks, parameters.panels))
    function.finish()
    return name


def _parameters(function: FunctionBuilder, slots: SSAValue) -> Parameters[SSAValue]:
    return read(function, function.pointer(slots, Slot.PARAMETERS), Parameters[SSAValue])


def _zeros(
    function: FunctionBuilder, parameters: Parameters[SSAValue], weights: SSAValue
) -> SSAValue:
    """The zeros behind the weights."""
    return function.gep(weights, function.multiply(parameters.panels, parameters.panel))


def _define_units(module: ModuleBuilder, variant: Variant, strips: Strips) -> str:
    """`void (slots, begin, end)`: some units, the panels of one block after the other."""
    name = f"{PREFIX}_units_{variant.suffix}{strips.suffix}"
    if module.has(name):
        return name
    kernels = [define_kernel(module, replace(variant, pixels=size)) for size in strips.sizes]
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    units = _Units(function, slots, _parameters(function, slots), variant.unit)

    def unit(index: SSAValue) -> None:
        units.write(function.add(begin, index), kernels, strips)

    function.loop(function.subtract(end, begin), unit)
    function.finish()
    return name


@dataclass(frozen=True)
class _Panel:
    """What a unit has of the channels of the result."""

    weights: SSAValue
    bias: SSAValue
    to: SSAValue
    """From the first channel to the panel's, in elements."""
    is_whole: SSAValue
    """Whether there are results for all of the panel."""


@dataclass(frozen=True)
class _Units:
    """Writes the loops of a thread."""

    function: FunctionBuilder
    slots: SSAValue
    parameters: Parameters[SSAValue]
    unit: VectorUnit

    def write(self, number: SSAValue, kernels: Sequence[str], strips: Strips) -> None:
        """Writes the code of one unit: a block of pieces of lines by one panel."""
        function, parameters = self.function, self.parameters
        block, panel_number = function.divmod(number, parameters.panels)
        first, last = function.share(parameters.pieces, block, parameters.blocks)
        panel = self._panel(panel_number)

        def piece(index: SSAValue, prefetched: Sequence[SSAValue]) -> Sequence[SSAValue]:
            image, rest = function.divmod(function.add(first, index), parameters.image_pieces)
            row, number = function.divmod(rest, parameters.line_pieces)
            state = self._begin(image, row, number, panel, *prefetched)
            counts = strips.counts(function, parameters, number)
            for kernel, size, count in zip(kernels, strips.sizes, counts, strict=True):
                state = self._strips(state, panel, kernel, size, count)
            return (state.prefetched,)

        function.fold(function.subtract(last, first), (function.integer(0),), piece)

    def _panel(self, number: SSAValue) -> _Panel:
        function, parameters, unit = self.function, self.parameters, self.unit
        weights, bias = (function.pointer(self.slots, slot) for slot in (Slot.WEIGHTS, Slot.BIAS))
        vectors = function.multiply(number, unit.panel_vectors)
        last = function.add(vectors, unit.panel_vectors - 1)
        return _Panel(
            function.gep(weights, function.multiply(number, parameters.panel)),
            function.gep(bias, function.multiply(number, unit.panel)),
            function.multiply(vectors, parameters.result_vector),
            function.compare("slt", last, parameters.outputs),
        )

    def _begin(
        self, image: SSAValue, row: SSAValue, piece: SSAValue, panel: _Panel, prefetched: SSAValue
    ) -> _Position:
        """The first pixel of a piece of a line."""
        function, parameters = self.function, self.parameters
        windows, pixel = parameters.windows, function.multiply(piece, parameters.piece_pixels)

        def place(start: SSAValue, *steps: tuple[SSAValue, SSAValue]) -> SSAValue:
            for count, step in steps:
                start = function.add(start, function.multiply(count, step))
            return start

        return _Position(
            function.subtract(function.multiply(row, windows.stride_y), windows.top),
            function.subtract(function.multiply(pixel, windows.stride_x), windows.left),
            place(
                parameters.source_start,
                (image, parameters.source_image),
                (row, parameters.source_line),
                (pixel, parameters.source_pixel),
            ),
            place(
                panel.to,
                (image, parameters.result_image),
                (row, parameters.result_line),
                (pixel, parameters.result_pixel),
            ),
            prefetched,
        )

    def _strips(
        self, start: _Position, panel: _Panel, kernel: str, size: int, count: SSAValue
    ) -> _Position:
        """Writes a loop over strips of one length. Returns the place behind them."""
        function, parameters = self.function, self.parameters
        weights, source, result, residual = (
            function.pointer(self.slots, slot)
            for slot in (Slot.WEIGHTS, Slot.SOURCE, Slot.RESULT, Slot.RESIDUAL)
        )
        zeros = _zeros(function, parameters, weights)
        following = function.gep(panel.weights, parameters.panel)
        steps = [
            function.multiply(step, size)
            for step in (
                parameters.windows.stride_x,
                parameters.source_pixel,
                parameters.result_pixel,
            )
        ]
        share_of_panel = function.divide(parameters.panel, self.unit.lanes)
        last = function.subtract(parameters.panel, share_of_panel)

        def strip(_: SSAValue, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
            *places, prefetched = state
            x, place, to = places
            function.do(
                kernel,
                *(function.pointer(self.slots, Slot.PARAMETERS), function.gep(source, place)),
                *(start.y, x, panel.weights, panel.bias, zeros),
                function.gep(following, prefetched),
                function.gep(result, to),
                panel.is_whole,
                function.gep(residual, to),
            )
            after = function.add(prefetched, share_of_panel)
            is_left = function.compare("slt", after, last)
            moved = [function.add(place, step) for place, step in zip(places, steps, strict=True)]
            return *moved, function.select(is_left, after, last)

        state = (start.x, start.place, start.to, start.prefetched)
        return _Position(start.y, *function.fold(count, state, strip))


@dataclass(frozen=True)
class _Position:
    """Where the next kernel reads and writes."""

    y: SSAValue
    x: SSAValue
    """Where the window of its first pixel begins in the image."""
    place: SSAValue
    """Elements of the source to that window."""
    to: SSAValue
    """Elements of the result to its first pixel."""
    prefetched: SSAValue
    """How much of the next panel was prefetched: each kernel prefetches one of `lanes` parts."""
