"""Functions of one convolution as an implicit GEMM, on all threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import Slot, read_parameters
from byoc_mlir.kernels.implicit_gemm.micro_kernel import (
    PREFIX,
    ImplicitGemmParameters,
    ImplicitGemmVariant,
    define_kernel,
)
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.strips import Strips
from byoc_mlir.kernels.vectors import VectorUnit


def define_implicit_gemm(
    module: ModuleBuilder,
    *,
    variant: ImplicitGemmVariant,
    strips: Strips,
    bias: bool,
    in_parts: bool,
) -> str:
    """Defines `void (slots)`, which runs one convolution with the arguments of `Slot`.

    Without a bias, the generated function stores the address of the zeros after the weights in the
    bias slot. Returns its symbol.
    """
    name = f"{PREFIX}_{variant.suffix}{strips.suffix}" + "_bias" * bias + "_parts" * in_parts
    if module.has(name):
        return name
    kernels = [
        (define_kernel(module, replace(one, pixels=size, clamped=is_clamped)), size)
        for one in (_of_parts(variant) if in_parts else (variant,))
        for size, is_clamped in zip(strips.sizes, (False, strips.is_clamped), strict=True)
    ]
    units = _define_units(module, variant.unit, strips, in_parts)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    parameters = read_parameters(function, slots, ImplicitGemmParameters[SSAValue])
    if not bias:
        zeros = _zeros(function, parameters, function.pointer(slots, Slot.WEIGHTS))
        function.store(zeros, function.slot(slots, Slot.BIAS))
    total = function.multiply(parameters.blocks, parameters.panels)
    function.parallel_for(units, _told(function, slots, kernels), total)
    function.finish()
    return name


_PARTS = 3
"""Kinds of window parts: first, middle and last; each kind has separate micro-kernels."""


def _told(
    function: FunctionBuilder, slots: SSAValue, kernels: Sequence[tuple[str, int]]
) -> SSAValue:
    """Stores the arguments of `_define_units` on the stack: the slots, then address and pixels of
    each micro-kernel.

    Returns the address of the arguments.
    """
    words = [slots]
    for kernel, pixels in kernels:
        words += [function.address(kernel), function.integer(pixels)]
    return function.stack_array(words)


def _zeros(
    function: FunctionBuilder, parameters: ImplicitGemmParameters[SSAValue], weights: SSAValue
) -> SSAValue:
    """Returns the address of the zeros after the weights."""
    return function.gep(weights, function.multiply(parameters.panels, parameters.panel))


def _define_units(module: ModuleBuilder, unit: VectorUnit, strips: Strips, in_parts: bool) -> str:
    """Defines `void (told, begin, end)`, which runs a range of units; returns its symbol.

    A unit is a block of pixels by one panel; units of the same block are adjacent. The
    micro-kernels are arguments, so LLVM compiles the function once for all of them.
    """
    name = f"{PREFIX}_units_{unit.panel_vectors}x{unit.lanes}{strips.suffix}"
    name += "_parts" * in_parts
    if module.has(name):
        return name
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    told, begin, end = function.parameters
    slots, count = function.pointer(told, 0), len(strips.sizes)
    kernels = [
        [_Kernel.read(function, told, part * count + number) for number in range(count)]
        for part in range(_PARTS if in_parts else 1)
    ]
    parameters = read_parameters(function, slots, ImplicitGemmParameters[SSAValue])
    units = _Units(function, slots, parameters, unit)
    function.for_range(begin, end, partial(units.write, kernels=kernels, strips=strips))
    function.finish()
    return name


def _of_parts(
    variant: ImplicitGemmVariant,
) -> tuple[ImplicitGemmVariant, ImplicitGemmVariant, ImplicitGemmVariant]:
    """Returns the variants for the first part of a window, the middle parts, and the last part.

    Later parts add the sums of earlier parts as a residual; only the last part applies the limits.
    """
    first = replace(variant, limits="none")
    return first, replace(first, residual=True), replace(variant, residual=True)


@dataclass(frozen=True)
class _Kernel:
    """Micro-kernel, as an argument of `_define_units`."""

    address: SSAValue
    pixels: SSAValue

    @staticmethod
    def read(function: FunctionBuilder, told: SSAValue, number: int) -> _Kernel:
        place = 1 + 2 * number
        return _Kernel(function.pointer(told, place), function.word(told, place + 1))


@dataclass(frozen=True)
class _Panel:
    """Panel of weights of a unit, for one part of the window."""

    weights: SSAValue
    bias: SSAValue
    residual: SSAValue
    row: SSAValue
    column: SSAValue
    """Column of the window at which the part begins; `row` is its row."""
    to: SSAValue
    """Elements from the result's first channel to the panel's first channel."""
    is_whole: SSAValue
    """True at run time if the result has all channels of the panel."""


@dataclass(frozen=True)
class _Units:
    """Writer of the loops over units that one thread runs."""

    function: FunctionBuilder
    slots: SSAValue
    parameters: ImplicitGemmParameters[SSAValue]
    unit: VectorUnit

    def write(self, number: SSAValue, kernels: Sequence[Sequence[_Kernel]], strips: Strips) -> None:
        """Generates one unit: a block of pieces of rows by one panel.

        `kernels` holds the kernels of the whole window, or of its first part, its middle parts and
        its last part.
        """
        function, parameters = self.function, self.parameters
        block, panel = function.divmod(number, parameters.panels)
        first, last = function.share(parameters.pieces, block, parameters.blocks)
        count = function.subtract(last, first)

        def part(number: SSAValue, kernels: Sequence[_Kernel], *, is_first: bool = False) -> None:
            held = self._panel(panel, number, is_first)

            def piece(index: SSAValue, prefetched: Sequence[SSAValue]) -> Sequence[SSAValue]:
                image, rest = function.divmod(function.add(first, index), parameters.image_pieces)
                row, number = function.divmod(rest, parameters.line_pieces)
                state = self._begin(image, row, number, held, *prefetched)
                counts = strips.counts(function, state.left, kernels[0].pixels)
                for kernel, count in zip(kernels, counts, strict=True):
                    state = self._strips(state, held, kernel, count)
                return (state.prefetched,)

            function.fold(count, (function.integer(0),), piece)

        beginning, *others = kernels
        part(function.integer(0), beginning, is_first=True)
        if others:
            between, end = others
            final = function.subtract(parameters.parts, 1)
            function.loop(
                function.subtract(final, 1), lambda index: part(function.add(index, 1), between)
            )
            part(final, end)

    def _panel(self, number: SSAValue, part: SSAValue, is_first: bool) -> _Panel:
        function, parameters, unit = self.function, self.parameters, self.unit
        weights, bias, residual, result = (
            function.pointer(self.slots, slot)
            for slot in (Slot.WEIGHTS, Slot.BIAS, Slot.RESIDUAL, Slot.RESULT)
        )
        vectors = function.multiply(number, unit.panel_vectors)
        last = function.add(vectors, unit.panel_vectors - 1)
        held = function.gep(weights, function.multiply(number, parameters.panel))
        row, column = function.divmod(part, parameters.line_parts)
        return _Panel(
            function.gep(held, function.multiply(part, parameters.part)),
            function.gep(bias, function.multiply(number, unit.panel))
            if is_first
            else _zeros(function, parameters, weights),
            residual if is_first else result,
            row,
            column,
            function.multiply(vectors, parameters.result_vector),
            function.compare("slt", last, parameters.outputs),
        )

    def _begin(
        self, image: SSAValue, row: SSAValue, piece: SSAValue, panel: _Panel, prefetched: SSAValue
    ) -> _Position:
        """Returns the position of the first pixel of a piece."""
        function, parameters = self.function, self.parameters
        windows, pixel = parameters.windows, function.multiply(piece, parameters.piece_pixels)
        left = function.subtract(parameters.row_pixels, pixel)

        def place(start: SSAValue, *steps: tuple[SSAValue, SSAValue]) -> SSAValue:
            for count, step in steps:
                start = function.add(start, function.multiply(count, step))
            return start

        y = function.subtract(function.multiply(row, windows.stride_y), windows.top)
        x = function.subtract(function.multiply(pixel, windows.stride_x), windows.left)
        return _Position(
            place(y, (panel.row, windows.dilation_y)),
            place(x, (panel.column, windows.dilation_x)),
            place(
                parameters.source_start,
                (image, parameters.source_image),
                (row, parameters.source_line),
                (pixel, parameters.source_pixel),
                (panel.row, parameters.window_line),
                (panel.column, parameters.window_pixel),
            ),
            place(
                panel.to,
                (image, parameters.result_image),
                (row, parameters.result_line),
                (pixel, parameters.result_pixel),
            ),
            prefetched,
            function.least(left, parameters.piece_pixels),
        )

    def _strips(
        self, start: _Position, panel: _Panel, kernel: _Kernel, count: SSAValue
    ) -> _Position:
        """Generates a loop over strips of one length; returns the position after the last strip."""
        function, parameters = self.function, self.parameters
        weights, source, result = (
            function.pointer(self.slots, slot) for slot in (Slot.WEIGHTS, Slot.SOURCE, Slot.RESULT)
        )
        zeros = _zeros(function, parameters, weights)
        following = function.gep(panel.weights, parameters.part)
        steps = [
            function.multiply(step, kernel.pixels)
            for step in (
                parameters.windows.stride_x,
                parameters.source_pixel,
                parameters.result_pixel,
            )
        ]
        share_of_part = function.divide(parameters.part, self.unit.lanes)
        last = function.subtract(parameters.part, share_of_part)

        def strip(_: SSAValue, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
            *places, prefetched, left = state
            x, place, to = places
            function.do_at(
                kernel.address,
                *(function.pointer(self.slots, Slot.PARAMETERS), function.gep(source, place)),
                *(start.y, x, panel.weights, panel.bias, zeros),
                function.gep(following, prefetched),
                function.gep(result, to),
                panel.is_whole,
                function.gep(panel.residual, to),
                left,
            )
            after = function.add(prefetched, share_of_part)
            is_left = function.compare("slt", after, last)
            moved = [function.add(place, step) for place, step in zip(places, steps, strict=True)]
            prefetched = function.select(is_left, after, last)
            return *moved, prefetched, function.subtract(left, kernel.pixels)

        state = (start.x, start.place, start.to, start.prefetched, start.left)
        return _Position(start.y, *function.fold(count, state, strip))


@dataclass(frozen=True)
class _Position:
    """Position at which the next micro-kernel reads and writes."""

    y: SSAValue
    x: SSAValue
    """Column of the image at which the first pixel's window begins; `y` is its row."""
    place: SSAValue
    """Offset of that window in the source, in elements."""
    to: SSAValue
    """Offset of the first pixel in the result, in elements."""
    prefetched: SSAValue
    """Elements of the next part that are prefetched; each kernel prefetches one of `lanes` shares.
    """
    left: SSAValue
    """Pixels that are left in the piece."""
