"""Recurrent layers as one kernel; directions and batch entries are parallel."""

from __future__ import annotations

import operator
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects import math
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import recurrent as relay
from byoc_mlir.dialects.relay.base import sizes_of, tensor_of, tensor_type
from byoc_mlir.dims import Size
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.kernel import Buffer, Index, Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.recurrent_product import (
    TILE_ROWS,
    BatchRows,
    Met,
    Row,
    add_product,
    in_panels,
)


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


def _copy_row(k: Kernel, to: Buffer, row: Row, source: Buffer, at: tuple[Index, ...]) -> None:
    with k.loop(to.sizes[-1]) as j:
        to[(*row, j)] = source[(*at, j)]


def _sizes(op: relay.RecurrentOp) -> tuple[Size, Size, Size, int]:
    """Returns the numbers of steps, directions and batch entries, and the static width of all
    gates.
    """
    steps, directions, batch, width = sizes_of(op.data)
    return steps, directions, batch, operator.index(width)


@contextmanager
def _tiles(k: Kernel, directions: Size, batch: Size, work: Size) -> Generator[BatchRows]:
    """Emits parallel loops over directions and tiles of batch entries, and yields a tile.

    Args:
        work: the rough number of cycles for one batch entry.
    """
    whole = isinstance(batch, int) and batch <= TILE_ROWS
    if whole:
        with k.loops([directions], cost=work * batch) as (direction,):
            yield BatchRows(direction, 0, batch)
        return
    tiles = (batch + (TILE_ROWS - 1)) // TILE_ROWS
    with k.loops([directions, tiles], cost=work * TILE_ROWS) as (direction, tile):
        first = k.index(tile) * TILE_ROWS
        yield BatchRows(direction, first, (k.index(batch) - first).min(TILE_ROWS))


def _lower_lstm(op: relay.LstmOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    steps, directions, batch, width = _sizes(op)
    size = width // 4
    element_type = tensor_type(op.data).element_type
    operands = [op.data, in_panels(b, op), *op.operands[2:]]
    met = Met(op)
    gates_type = tensor_of(element_type, [directions, batch, width])
    k = Kernel(op, operands, scratch=[gates_type, *met.scratch])
    data, weight, first_hidden, first_cell = k.inputs
    output, hidden, cell = k.outputs
    gates = k.scratch[0]

    def begin(row: Row) -> None:
        _copy_row(k, hidden, row, first_hidden, row)
        _copy_row(k, cell, row, first_cell, row)
        met.take(k, row, hidden)

    with _tiles(k, directions, batch, steps * size * width) as rows:
        rows.each(k, begin)
        with k.loop(steps) as step:
            time = _time(k, op, rows.direction, step, steps)

            def end(row: Row, time: Num = time) -> None:
                with k.loop(size) as j:
                    i, o, f, c = (gates[(*row, j + size * gate)] for gate in range(4))
                    new = _sigmoid(f) * cell[(*row, j)] + _sigmoid(i) * _tanh(c)
                    cell[(*row, j)] = new
                    hidden[(*row, j)] = _sigmoid(o) * _tanh(new)
                _copy_row(k, output, (time, *row), hidden, row)
                met.take(k, row, hidden)

            rows.each(k, lambda row, time=time: _copy_row(k, gates, row, data, (time, *row)))
            add_product(k, step, gates, rows, met.buffer(k, hidden), weight, (0, width))
            rows.each(k, end)
    return k.finish(b)


def _lower_gru(op: relay.GruOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    steps, directions, batch, width = _sizes(op)
    size = width // 3
    element_type = tensor_type(op.data).element_type
    scratch = [tensor_of(element_type, [directions, batch, n]) for n in (width, size)]
    operands = [op.data, in_panels(b, op), *op.operands[2:]]
    met = Met(op)
    k = Kernel(op, operands, scratch=[*scratch, *met.scratch])
    data, weight, bias, first_hidden = k.inputs
    output, hidden = k.outputs
    sums, reset_hidden = k.scratch[:2]
    linear = bool(op.linear_before_reset.value.data)

    def begin(row: Row) -> None:
        _copy_row(k, hidden, row, first_hidden, row)
        met.take(k, row, hidden)

    with _tiles(k, directions, batch, steps * size * width) as rows:
        rows.each(k, begin)
        with k.loop(steps) as step:
            time = _time(k, op, rows.direction, step, steps)

            def reset(row: Row, time: Num = time) -> None:
                with k.loop(size) as j:
                    gate = _sigmoid(data[(time, *row, j + size)] + sums[(*row, j + size)])
                    sums[(*row, j + size)] = gate
                    reset_hidden[(*row, j)] = gate * hidden[(*row, j)]
                if not linear:
                    met.take(k, row, reset_hidden)

            def end(row: Row, time: Num = time) -> None:
                with k.loop(size) as j:
                    update = _sigmoid(data[(time, *row, j)] + sums[(*row, j)])
                    inner = sums[(*row, j + 2 * size)]
                    if linear:
                        inner = inner * sums[(*row, j + size)]
                    new = _tanh(data[(time, *row, j + 2 * size)] + inner)
                    hidden[(*row, j)] = (1.0 - update) * new + update * hidden[(*row, j)]
                _copy_row(k, output, (time, *row), hidden, row)
                met.take(k, row, hidden)

            rows.each(k, lambda row: _copy_row(k, sums, row, bias, (row[0],)))
            columns = (0, width if linear else 2 * size)
            add_product(k, step, sums, rows, met.buffer(k, hidden), weight, columns)
            rows.each(k, reset)
            if not linear:
                columns = (2 * size, width)
                add_product(k, step, sums, rows, met.buffer(k, reset_hidden), weight, columns)
            rows.each(k, end)
    return k.finish(b)


FUNCTIONS: Lowerings = {relay.GruOp: _lower_gru, relay.LstmOp: _lower_lstm}
