"""Resizing: one kernel for each axis that changes, with tables of positions and weights."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.dialects.builtin import Float64Type, IntegerType, f32, f64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects.relay import image as relay
from byoc_mlir.dialects.relay.base import rank_of, sizes_of, tensor_of, tensor_type
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.computed_types import bounds
from byoc_mlir.lowering.relay_to_linalg.index import around
from byoc_mlir.lowering.relay_to_linalg.kernel import INDEX, Buffer, Index, Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.resampling import tables_along

_MOST_UNROLLED = 8


def _lower_resize(op: relay.ResizeOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    element = tensor_type(op.data).element_type
    if op.method.data == "nearest":
        through = element
    else:
        through = f64 if isinstance(element, Float64Type | IntegerType) else f32
    axes = [axis for axis in range(rank_of(op.data)) if not op.is_kept(axis)]
    result = op.data
    for axis in axes:
        target = element if axis == axes[-1] else through
        result = _resized(op, b, result, axis, through, target)
    return [result]


def _resized(
    op: relay.ResizeOp,
    b: LinalgBuilder,
    data: SSAValue,
    axis: int,
    through: Attribute,
    target: Attribute,
) -> SSAValue:
    """Resizes one axis of `data`, with arithmetic in `through`.

    Along the last axis, adjacent results read elements that are not contiguous. A gather would take
    longer than single loads.
    """
    tables = tables_along(op, b, axis, f64 if through == f64 else f32)
    shape, count = list(sizes_of(data)), tables.count
    shape[axis] = sizes_of(op.output)[axis]
    outer, size, inner = around(sizes_of(data), axis)
    results = [tensor_of(target, shape)]
    k = Kernel(op, [data, *tables.values], results, prefer_no_gather=inner == 1)
    source = k.inputs[0].reshaped(outer, size, inner)
    result = k.outputs[0].reshaped(outer, shape[axis], inner)
    nearest = op.method.data == "nearest"
    with k.loops([outer, shape[axis]], cost=2 * count * inner) as (o, i):
        positions = _Row(k, k.inputs[1], i, count)
        weight_row = _Row(k, k.inputs[2], i, count)
        outside = k.inputs[3][i] if tables.may_be_outside else None
        with k.sequential([1, inner]) as (_, n):
            if nearest:
                value = source[o, positions[0].to(INDEX), n]
            else:
                value = _weighted(k, source, (o, n), positions, weight_row, count, through)
            if outside is not None:
                value = k.select(outside, op.extrapolation_value.value.data, value)
            result[o, i, n] = value if nearest else rounded(value, target)
    return k.finish(b)[0]


class _Row:
    """Row of a table; its entries are loaded once if there are few."""

    def __init__(self, k: Kernel, table: Buffer, row: Index, count: int):
        self._table = table
        self._row = row
        self._loaded = [table[row, t] for t in range(count)] if count <= _MOST_UNROLLED else []

    def __getitem__(self, column: Index) -> Num:
        if isinstance(column, int) and self._loaded:
            return self._loaded[column]
        return self._table[self._row, column]


def _weighted(
    k: Kernel,
    source: Buffer,
    at: tuple[Index, Index],
    positions: _Row,
    weights: _Row,
    count: int,
    through: Attribute,
) -> Num:
    o, n = at

    def term(t: Index) -> Num:
        return source[o, positions[t].to(INDEX), n].to(through) * weights[t]

    if count <= _MOST_UNROLLED:
        total = term(0)
        for t in range(1, count):
            total = total + term(t)
        return total
    variable = k.variable(k.constant(0, through))
    with k.loop(count) as t:
        variable.value = variable.value + term(t)
    return variable.value


def rounded(value: Num, target: Attribute) -> Num:
    """Converts a computed value to an element; integers are rounded to even and saturate."""
    if not isinstance(target, IntegerType):
        return value.to(target)
    low, high = bounds(target)
    return value.unary(math.RoundEvenOp).within(low, high).to(target)


FUNCTIONS: Lowerings = {relay.ResizeOp: _lower_resize}
