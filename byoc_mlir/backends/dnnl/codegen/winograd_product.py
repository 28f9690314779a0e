"""The products of Winograd's algorithm: rows of several tiles times a panel of the weights.

A kernel keeps up to 6 rows of 16 results in registers while it goes along the input channels once;
the panel of weights stays in the first cache for all tiles of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.llvm_builder import (
    POINTER,
    VOID,
    ModuleBuilder,
)
from byoc_mlir.backends.dnnl.codegen.vectors import (
    add_products,
    divided,
    element,
    fetch,
    further,
    scaled,
    share,
    splat,
    store,
)
from byoc_mlir.backends.dnnl.codegen.winograd_table import ImageWord, Table, Word
from byoc_mlir.backends.dnnl.own_layouts import LANES, PANEL

_PREFIX = "byoc_dnnl_winograd"

_MOST_ROWS = 6
"""With two vectors of results each, one broadcast and two of weights: 15 of 16 registers."""

_AHEAD = 256
"""Elements of the weights that are fetched before they are needed."""


def add_product(module: ModuleBuilder, matrices: int) -> str:
    """`void (table, source, weights, result, tiles, begin, end)`.

    The products of one block, or some of them: those of the panels from `begin` to `end`, where
    those of all matrices are counted.
    """
    name = f"{_PREFIX}_product_{matrices}"
    if module.has(name):
        return name
    kernels = [_add_kernel(module, rows) for rows in range(1, _MOST_ROWS + 1)]
    function = module.function(name, (*(POINTER,) * 4, i64, i64, i64), result=VOID, internal=True)
    address, source, weights, result, tiles, begin, end = function.parameters
    multiply, add = partial(function.binary, llvm.MulOp), partial(function.binary, llvm.AddOp)
    table = Table(function, address)
    panels, inputs = table.word(Word.PANELS), table.source(ImageWord.MATRIX)
    outputs = table.result(ImageWord.MATRIX)
    rows_of = table.source(ImageWord.TILE), table.result(ImageWord.TILE)
    strips = function.binary(
        llvm.SDivOp, scaled(function, tiles, 1, _MOST_ROWS - 1), function.integer(_MOST_ROWS)
    )
    panel_size = scaled(function, inputs, PANEL)

    def panel(index: SSAValue) -> None:
        number = add(begin, index)
        matrix, column = divided(function, number, panels)
        held = element(function, weights, multiply(number, panel_size))
        read = element(function, source, multiply(matrix, inputs))
        written = add(multiply(matrix, outputs), scaled(function, column, PANEL))

        def strip(index: SSAValue) -> None:
            first, last = share(function, tiles, index, strips)
            rows = element(function, read, multiply(first, rows_of[0]))
            to = element(function, result, add(written, multiply(first, rows_of[1])))
            count = function.binary(llvm.SubOp, last, first)
            for number, kernel in enumerate(kernels, 1):
                chosen = function.compare("eq", count, function.integer(number))
                call = partial(function.do, kernel, rows, rows_of[0], held, inputs, to, rows_of[1])
                function.when(chosen, call)

        function.loop(strips, strip)

    function.loop(function.binary(llvm.SubOp, end, begin), panel)
    function.finish()
    return name


def _add_kernel(module: ModuleBuilder, rows: int) -> str:
    """`void (source, source_stride, panel, inputs, result, result_stride)`: a few rows."""
    name = f"{_PREFIX}_kernel_{rows}"
    if module.has(name):
        return name
    types = (POINTER, i64, POINTER, i64, POINTER, i64)
    function = module.function(name, types, result=VOID, internal=True)
    source, source_stride, panel, inputs, result, result_stride = function.parameters

    def row(base: SSAValue, stride: SSAValue, number: int) -> SSAValue:
        return element(function, base, scaled(function, stride, number))

    sources = [row(source, source_stride, number) for number in range(rows)]
    columns = range(0, PANEL, LANES)

    def add_input(index: SSAValue, sums: Sequence[SSAValue]) -> Sequence[SSAValue]:
        start = element(function, panel, scaled(function, index, PANEL))
        fetch(function, further(function, start, _AHEAD))
        numbers = [element(function, values, index) for values in sources]
        return add_products(function, numbers, start, sums)

    zero = splat(function, 0.0)
    totals = function.fold(inputs, [zero] * (rows * len(columns)), add_input)
    for number in range(rows):
        to = row(result, result_stride, number)
        for at, column in enumerate(columns):
            store(function, totals[number * len(columns) + at], further(function, to, column))
    function.finish()
    return name
