"""Functions of one depthwise convolution, on all threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import Slot, read_parameters
from byoc_mlir.kernels.depthwise.micro_kernel import (
    PREFIX,
    DepthwiseParameters,
    DepthwiseVariant,
    define_kernel,
)
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.strips import Strips


def define_depthwise(
    module: ModuleBuilder, *, variant: DepthwiseVariant, strips: Strips, bias: bool
) -> str:
    """Defines `void (slots)`, which runs one convolution with the arguments of `Slot`.

    Without a bias, the generated function stores the address of the zeros after the weights in the
    bias slot. Returns its symbol.
    """
    name = f"{PREFIX}_{variant.suffix}{strips.suffix}" + "_bias" * bias
    if module.has(name):
        return name
    lines = _define_lines(module, variant, strips)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    parameters = read_parameters(function, slots, DepthwiseParameters[SSAValue])
    if not bias:
        function.store(_zeros(function, parameters, slots), function.slot(slots, Slot.BIAS))
    function.parallel_for(lines, slots, parameters.lines)
    function.finish()
    return name


def _zeros(
    function: FunctionBuilder, parameters: DepthwiseParameters[SSAValue], slots: SSAValue
) -> SSAValue:
    """Returns the address of the zeros after the weights."""
    return function.gep(function.pointer(slots, Slot.WEIGHTS), parameters.weights)


def _define_lines(module: ModuleBuilder, variant: DepthwiseVariant, strips: Strips) -> str:
    """Defines `void (slots, begin, end)` for a range of the result's rows; returns its symbol."""
    name = f"{PREFIX}_lines_{variant.suffix}{strips.suffix}"
    if module.has(name):
        return name
    variants = [replace(variant, pixels=size) for size in strips.sizes if size]
    kernels = [_StripKernels.define(module, one) for one in variants]
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    parameters = read_parameters(function, slots, DepthwiseParameters[SSAValue])
    lines = _RowLoops(function, slots, parameters)
    function.for_range(begin, end, partial(lines.write, kernels=kernels, strips=strips))
    function.finish()
    return name


@dataclass(frozen=True)
class _StripKernels:
    """Micro-kernels for strips of one length: one for strips within the row, one for strips with
    padding at the sides.
    """

    variant: DepthwiseVariant
    inside: str
    padded: str

    @staticmethod
    def define(module: ModuleBuilder, variant: DepthwiseVariant) -> _StripKernels:
        inside, padded = (define_kernel(module, variant, padded=one) for one in (False, True))
        return _StripKernels(variant, inside, padded)


@dataclass(frozen=True)
class _ResultRow:
    """Row of the result."""

    source: SSAValue
    """Address of the first window row in the image, at column 0 of the image."""
    lines: SSAValue
    """Number of window rows in the image."""
    weights: SSAValue
    """Weights of the first window row in the image."""
    to: SSAValue
    """Offset of the row in the result, in elements."""


@dataclass(frozen=True)
class _RowLoops:
    """Writer of the loops over rows that one thread runs."""

    function: FunctionBuilder
    slots: SSAValue
    parameters: DepthwiseParameters[SSAValue]

    def write(self, number: SSAValue, kernels: Sequence[_StripKernels], strips: Strips) -> None:
        """Generates the code of one row, the longest strips first."""
        function, parameters = self.function, self.parameters
        line = self._line(number, kernels[0].variant)
        state = [function.subtract(function.integer(0), parameters.windows.left), line.to]
        longest = function.integer(strips.longest)
        counts = strips.counts(function, parameters.row_pixels, longest)
        for one, count in zip(kernels, counts, strict=False):
            state = self._strips(line, one, count, state)

    def _line(self, number: SSAValue, variant: DepthwiseVariant) -> _ResultRow:
        function, parameters = self.function, self.parameters
        add, multiply, subtract = function.add, function.multiply, function.subtract
        image, row = function.divmod(number, parameters.rows)
        y = subtract(multiply(row, parameters.windows.stride_y), parameters.windows.top)
        first = self._steps(subtract(function.integer(0), y))
        after = self._steps(subtract(parameters.windows.height, y))
        after = self.function.least(after, parameters.window_height)
        place = add(
            multiply(image, parameters.source_image),
            multiply(
                add(y, multiply(first, parameters.windows.dilation_y)), parameters.source_line
            ),
        )
        to = add(multiply(image, parameters.result_image), multiply(row, parameters.result_line))
        weights = function.gep(
            function.pointer(self.slots, Slot.WEIGHTS),
            multiply(first, variant.columns * variant.block),
        )
        source = function.gep(function.pointer(self.slots, Slot.SOURCE), place, variant.element)
        return _ResultRow(source, subtract(after, first), weights, to)

    def _steps(self, pixels: SSAValue) -> SSAValue:
        """Computes how many window rows lie within `pixels` rows, or 0 if `pixels` is negative."""
        function, dilation = self.function, self.parameters.windows.dilation_y
        is_some = function.compare("sgt", pixels, function.integer(0))
        some = function.select(is_some, pixels, function.integer(0))
        return function.divide(function.add(some, function.subtract(dilation, 1)), dilation)

    def _strips(
        self, line: _ResultRow, kernels: _StripKernels, count: SSAValue, start: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Generates a loop over strips of one length; returns the position after the last strip."""
        function, parameters = self.function, self.parameters
        pixels, element = kernels.variant.pixels, kernels.variant.element
        beyond = function.subtract(parameters.windows.width, kernels.variant.places[-1])
        has_inside = function.compare("sgt", beyond, function.integer(0))
        beyond = function.select(has_inside, beyond, function.integer(0))
        bias, result, residual = (
            function.pointer(self.slots, slot) for slot in (Slot.BIAS, Slot.RESULT, Slot.RESIDUAL)
        )
        zeros = _zeros(function, parameters, self.slots)
        steps = (
            function.multiply(parameters.windows.stride_x, pixels),
            function.multiply(parameters.result_pixel, pixels),
        )

        def strip(_: SSAValue, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
            x, to = state
            arguments = (
                function.pointer(self.slots, Slot.PARAMETERS),
                function.gep(line.source, function.multiply(x, parameters.source_pixel), element),
                *(x, line.lines, line.weights, bias, zeros),
                *(function.gep(one, to, element) for one in (result, residual)),
            )
            for predicate, kernel in (("ult", kernels.inside), ("uge", kernels.padded)):
                is_so = function.compare(predicate, x, beyond)
                function.when(is_so, lambda kernel=kernel: function.do(kernel, *arguments))
            return [function.add(one, step) for one, step in zip(state, steps, strict=True)]

        return list(function.fold(count, start, strip))
