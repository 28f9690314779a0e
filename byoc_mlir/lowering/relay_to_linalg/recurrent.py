"""Recurrent layers as one kernel: directions and batch entries run beside each other."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects import math
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import recurrent as relay
from byoc_mlir.dialects.relay.base import sizes_of, tensor_of, tensor_type
from byoc_mlir.dims import Size
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.kernel import Buffer, Index, Kernel, Num

Row: TypeAlias = tuple[Index, ...]
"""Where a row of a buffer is: all its positions but the last."""

_ROWS = 4
"""Rows of the weight that are multiplied in one pass over the sums. Rows are often a power of two
apart: eight of them and the sums fall into one set of the cache, which has room for eight lines."""


def _sigmoid(number: Num) -> Num:
    return 1.0 / ((-number).unary(math.ExpOp) + 1.0)


def _tanh(number: Num) -> Num:
    return number.unary(math.TanhOp)


def _time(k: Kernel, op: relay.RecurrentOp, direction: Index, step: Num, steps: Size) -> Num:
    back = k.index(steps - 1) - step
    match op.direction.data:
        case "forward":
            return step
        case "reverse":
            return back
        case _:
            return k.select(k.index(direction).equals(0), step, back)


def _add_product(
    k: Kernel,
    sums: Buffer,
    row: Row,
    vector: Buffer,
    weight: Buffer,
    columns: tuple[int, int],
) -> None:
    """`sums[row, columns] += vector[row] · weight[direction, :, columns]`, some rows at a time."""
    direction = row[0]
    begin, end = columns
    size = weight.shape[1]

    def block(first: Index, count: int) -> None:
        places = [k.index(first) + offset for offset in range(count)]
        factors = [vector[(*row, place)] for place in places]
        with k.loop(end, start=begin) as j:
            total = sums[(*row, j)]
            for place, factor in zip(places, factors, strict=True):
                total = total + factor * weight[direction, place, j]
            sums[(*row, j)] = total

    whole = size - size % _ROWS
    if whole:
        with k.loop(whole, step=_ROWS) as first:
            block(first, _ROWS)
    if size % _ROWS:
        block(whole, size % _ROWS)


def _copy_row(k: Kernel, to: Buffer, row: Row, source: Buffer, at: tuple[Index, ...]) -> None:
    with k.loop(to.sizes[-1]) as j:
        to[(*row, j)] = source[(*at, j)]


def _sizes(op: relay.RecurrentOp) -> tuple[Size, Size, Size, int]:
    """Steps, directions, batch and the width of all gates, which is a number."""
    steps, directions, batch, width = sizes_of(op.data)
    return steps, directions, batch, operator.index(width)


def _lower_lstm(op: relay.LstmOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    steps, directions, batch, width = _sizes(op)
    size = width // 4
    element_type = tensor_type(op.data).element_type
    k = Kernel(op, scratch=[tensor_of(element_type, [directions, batch, width])])
    data, weight, first_hidden, first_cell = k.inputs
    output, hidden, cell = k.outputs
    (gates,) = k.scratch
    with k.loops([directions, batch], cost=steps * size * width) as row:
        _copy_row(k, hidden, row, first_hidden, row)
        _copy_row(k, cell, row, first_cell, row)
        with k.loop(steps) as step:
            time = _time(k, op, row[0], step, steps)
            _copy_row(k, gates, row, data, (time, *row))
            _add_product(k, gates, row, hidden, weight, (0, width))
            with k.loop(size) as j:
                i, o, f, c = (gates[(*row, j + size * gate)] for gate in range(4))
                new = _sigmoid(f) * cell[(*row, j)] + _sigmoid(i) * _tanh(c)
                cell[(*row, j)] = new
                hidden[(*row, j)] = _sigmoid(o) * _tanh(new)
            _copy_row(k, output, (time, *row), hidden, row)
    return k.finish(b)


def _lower_gru(op: relay.GruOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    steps, directions, batch, width = _sizes(op)
    size = width // 3
    element_type = tensor_type(op.data).element_type
    scratch = [tensor_of(element_type, [directions, batch, n]) for n in (width, size)]
    k = Kernel(op, scratch=scratch)
    data, weight, bias, first_hidden = k.inputs
    output, hidden = k.outputs
    sums, reset_hidden = k.scratch
    linear = bool(op.linear_before_reset.value.data)
    with k.loops([directions, batch], cost=steps * size * width) as row:
        direction = row[0]
        _copy_row(k, hidden, row, first_hidden, row)
        with k.loop(steps) as step:
            time = _time(k, op, direction, step, steps)
            _copy_row(k, sums, row, bias, (direction,))
            _add_product(k, sums, row, hidden, weight, (0, width if linear else 2 * size))
            with k.loop(size) as j:
                reset = _sigmoid(data[(time, *row, j + size)] + sums[(*row, j + size)])
                sums[(*row, j + size)] = reset
                reset_hidden[(*row, j)] = reset * hidden[(*row, j)]
            if not linear:
                _add_product(k, sums, row, reset_hidden, weight, (2 * size, width))
            with k.loop(size) as j:
                update = _sigmoid(data[(time, *row, j)] + sums[(*row, j)])
                inner = sums[(*row, j + 2 * size)]
                if linear:
                    inner = inner * sums[(*row, j + size)]
                new = _tanh(data[(time, *row, j + 2 * size)] + inner)
                hidden[(*row, j)] = (1.0 - update) * new + update * hidden[(*row, j)]
            _copy_row(k, output, (time, *row), hidden, row)
    return k.finish(b)


FUNCTIONS: Lowerings = {relay.GruOp: _lower_gru, relay.LstmOp: _lower_lstm}
