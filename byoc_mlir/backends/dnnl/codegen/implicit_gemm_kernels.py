"""The kernels of an implicit product: a few pixels times a panel of the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.implicit_gemm_table import Table, Word
from byoc_mlir.backends.dnnl.codegen.llvm_builder import (
    POINTER,
    VOID,
    FunctionBuilder,
    ModuleBuilder,
)
from byoc_mlir.backends.dnnl.codegen.vectors import (
    add_products,
    at_least,
    broadcast,
    element,
    fetch,
    further,
    limited,
    load,
    scaled,
    splat,
    store,
    weighted_sum,
)
from byoc_mlir.backends.dnnl.implicit_gemm import Variant
from byoc_mlir.backends.dnnl.own_layouts import LANES, PANEL

PREFIX = "byoc_dnnl_implicit_gemm"
_VECTORS = PANEL // LANES

Sums = Sequence[SSAValue]

PARAMETERS = (POINTER, POINTER, i64, i64, *(POINTER,) * 5, i1, POINTER)
"""The table; the first pixel's window, and where it begins in its image; panel, bias, zeros, what
to fetch, and result; whether the panel's second half is written; the residual, or null."""


def add_kernel(module: ModuleBuilder, variant: Variant) -> str:
    """`void (table, source, y, x, panel, bias, zeros, next, result, is_whole, residual)`."""
    name = f"{PREFIX}_kernel_{suffix(variant)}"
    if module.has(name):
        return name
    function = module.function(name, PARAMETERS, result=VOID, internal=True)
    address, source, y, x, panel, bias, zeros, ahead, result, is_whole, other = function.parameters
    table, pixels = Table(function, address), range(variant.pixels)
    sums = _Window(function, table, variant, source, y, x, zeros, ahead).sums(panel, bias)
    limits = _limits(function, table, variant)
    steps = [scaled(function, table[Word.RESULT_PIXEL], pixel) for pixel in pixels]

    def write(half: int) -> None:
        group = scaled(function, table[Word.RESULT_GROUP], half)
        for pixel, step in enumerate(steps):
            at, total = function.binary(llvm.AddOp, step, group), sums[pixel * _VECTORS + half]
            if variant.residual:
                term = load(function, element(function, other, at))
                total = weighted_sum(function, (1, total), (1, term))
            store(function, limits(total), element(function, result, at))

    write(0)
    function.when(is_whole, partial(write, 1))
    function.finish()
    return name


def suffix(variant: Variant) -> str:
    """What tells the functions of variants apart."""
    flags = "_padded" * variant.padded + "_sum" * variant.residual
    return f"{variant.pixels}{flags}_{variant.limits}"


def _limits(
    function: FunctionBuilder, table: Table, variant: Variant
) -> Callable[[SSAValue], SSAValue]:
    if variant.limits == "none":
        return lambda value: value
    if variant.limits == "relu":
        return partial(at_least, function, limit=splat(function, 0.0))
    lower, upper = (broadcast(function, table.limit(one)) for one in (Word.LOWER, Word.UPPER))
    return partial(limited, function, lower=lower, upper=upper)


@dataclass(frozen=True)
class _Window:
    """What the results of some pixels, next to each other, are made of."""

    function: FunctionBuilder
    table: Table
    variant: Variant
    source: SSAValue
    y: SSAValue
    x: SSAValue
    """That of the first pixel, and where it begins in its image."""
    zeros: SSAValue
    ahead: SSAValue
    """Weights that will be needed soon."""

    def sums(self, panel: SSAValue, bias: SSAValue) -> Sums:
        """For each pixel the vectors of its sums."""
        function, table = self.function, self.table
        width, inputs = table[Word.KERNEL_WIDTH], table[Word.INPUTS]
        starts = [load(function, further(function, bias, LANES * n)) for n in range(_VECTORS)]

        def line(y: SSAValue, sums: Sums) -> Sums:
            before = function.binary(llvm.MulOp, y, width)

            def pixel(x: SSAValue, sums: Sums) -> Sums:
                number = function.binary(llvm.AddOp, before, x)
                groups = function.binary(llvm.MulOp, number, inputs)
                held = element(function, panel, scaled(function, groups, LANES * PANEL))
                ahead = element(function, self.ahead, scaled(function, groups, PANEL))
                sources = self._sources(y, x)

                def group(index: SSAValue, sums: Sums) -> Sums:
                    fetch(function, element(function, ahead, scaled(function, index, PANEL)))
                    return self._group(index, sources, held, sums)

                return function.fold(inputs, sums, group)

            return function.fold(width, sums, pixel)

        return function.fold(table[Word.KERNEL_HEIGHT], starts * self.variant.pixels, line)

    def _sources(self, y: SSAValue, x: SSAValue) -> list[SSAValue]:
        """What the pixels read at a place of the window."""
        function, table = self.function, self.table
        multiply, add = (partial(function.binary, op) for op in (llvm.MulOp, llvm.AddOp))
        place = add(multiply(y, table[Word.KERNEL_LINE]), multiply(x, table[Word.KERNEL_PIXEL]))
        sources: list[SSAValue] = []
        for _ in range(self.variant.pixels):
            sources.append(element(function, self.source, place))
            place = add(place, table[Word.SOURCE_PIXEL])
        return self._inside(y, x, sources) if self.variant.padded else sources

    def _inside(self, y: SSAValue, x: SSAValue, sources: Sequence[SSAValue]) -> list[SSAValue]:
        """Zeros in place of sources that lie outside of the image."""
        function, table = self.function, self.table
        multiply, add = (partial(function.binary, op) for op in (llvm.MulOp, llvm.AddOp))
        y = add(self.y, multiply(y, table[Word.DILATION_Y]))
        x = add(self.x, multiply(x, table[Word.DILATION_X]))
        is_line = function.compare("ult", y, table[Word.HEIGHT])
        chosen: list[SSAValue] = []
        for source in sources:
            is_pixel = function.compare("ult", x, table[Word.WIDTH])
            is_inside = function.binary(llvm.AndOp, is_line, is_pixel)
            chosen.append(function.select(is_inside, source, self.zeros))
            x = add(x, table[Word.STRIDE_X])
        return chosen

    def _group(
        self, index: SSAValue, sources: Sequence[SSAValue], held: SSAValue, sums: Sums
    ) -> Sums:
        """Adds the products of 8 channels."""
        function = self.function
        offset = function.binary(llvm.MulOp, index, self.table[Word.INPUT])
        places = [element(function, source, offset) for source in sources]
        panel = element(function, held, scaled(function, index, LANES * PANEL))
        for channel in range(LANES):
            numbers = [further(function, place, channel) for place in places]
            row = further(function, panel, channel * PANEL)
            sums = add_products(function, numbers, row, sums)
        return sums
