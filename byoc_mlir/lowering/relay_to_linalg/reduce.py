"""Reductions, softmax and log-softmax."""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AffineMapAttr, StringAttr, UnitAttr, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineMap

from byoc_mlir.dialects.relay import reduce as relay
from byoc_mlir.dialects.relay.base import sizes_of, tensor_of, tensor_type, type_sizes
from byoc_mlir.kernels.f32_functions import AT_MOST_ZERO
from byoc_mlir.lowering.relay_to_linalg.builder import (
    PARALLEL,
    REDUCTION,
    Body,
    LinalgBuilder,
    Lowering,
    Lowerings,
    Read,
    dims,
)
from byoc_mlir.lowering.relay_to_linalg.computed_types import Kind, accumulator_type, bounds
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars


def _combine(name: str) -> Body:
    return lambda s, x, total: s.binary(name, total, s.cast(x, x.type, total.type))


def _least(element: Attribute) -> float:
    return bounds(element)[0]


def _greatest(element: Attribute) -> float:
    return bounds(element)[1]


def fold(
    b: LinalgBuilder, data: SSAValue, axes: Sequence[int], name: str, start: float
) -> SSAValue:
    """Reduces `data` over `axes` (which stay as 1) by a binary op, in the accumulator type."""
    type_ = tensor_type(data)
    shape = type_sizes(type_)
    element = accumulator_type(type_.element_type)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    init = b.filled(start, tensor_of(element, [shape[axis] for axis in kept]))
    reads = [Read(data, dims(range(len(shape))))]
    total = b.reduce(reads, init, dims(kept), axes, len(shape), _combine(name))
    return b.reshape(total, [1 if axis in axes else size for axis, size in enumerate(shape)])


def total(b: LinalgBuilder, data: SSAValue, axes: Sequence[int]) -> SSAValue:
    """Sums over `axes`, which stay as 1, in the accumulator type."""
    return fold(b, data, axes, "add", 0)


def mean(b: LinalgBuilder, data: SSAValue, axes: Sequence[int]) -> SSAValue:
    """Computes the mean over `axes`, which stay as 1, in the accumulator type."""
    shape = sizes_of(data)
    count = pymath.prod(shape[axis] for axis in axes)
    summed = total(b, data, axes)
    type_ = tensor_type(summed)
    return b.elementwise([summed], type_, lambda s, x: s.div(x, s.size(count, x.type)))


def _finished(op: relay.ReduceOp, value: SSAValue, b: LinalgBuilder) -> Sequence[SSAValue]:
    result = tensor_type(op.output)
    return [b.reshape(b.cast(value, result.element_type), type_sizes(result))]


def _fold_op(name: str, start: Callable[[Attribute], float]) -> Lowering:
    def lower(op: relay.ReduceOp, b: LinalgBuilder) -> Sequence[SSAValue]:
        if not op.axes:
            return [op.data]
        first = start(tensor_type(op.data).element_type)
        return _finished(op, fold(b, op.data, op.axes, name, first), b)

    return lower


def _lower_mean(op: relay.MeanOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    return _finished(op, mean(b, op.data, op.axes), b) if op.axes else [op.data]


def _arg_op(predicate: str, start: Callable[[Attribute], float]) -> Lowering:
    def lower(op: relay.ArgReduceOp, b: LinalgBuilder) -> Sequence[SSAValue]:
        later = predicate[0] + "e" if op.select_last_index.value.data else predicate
        positions = _arg_reduce(b, op, later, start(tensor_type(op.data).element_type))
        return [b.reshape(positions, sizes_of(op.output))]

    return lower


def _arg_reduce(b: LinalgBuilder, op: relay.ArgReduceOp, better: str, start: float) -> SSAValue:
    """Computes the positions of extreme values, with accumulators (value, position). NaN wins over
    all values.
    """
    shape, (axis,) = sizes_of(op.data), op.axes
    element = accumulator_type(tensor_type(op.data).element_type)
    is_along_rows = axis == len(shape) - 1  # then the search has no vectors that convert
    data = b.cast(op.data, element) if is_along_rows else op.data
    read = tensor_type(data).element_type
    kept = [position for position in range(len(shape)) if position != axis]
    kept_shape = [shape[position] for position in kept]
    values = b.filled(start, tensor_of(element, kept_shape))
    positions = b.filled(0, tensor_of(i64, kept_shape))
    block = Block(arg_types=[read, element, i64])
    s = Scalars(block, Kind.of(element))
    x, best = s.cast(s.unwrap(block.args[0]), read, element), s.unwrap(block.args[1])
    wins = _wins(s, better, x, best)
    new_best = s.wrap(s.select(wins, x, best), element)
    position = s.select(wins, s.index(axis), block.args[2])
    block.add_op(linalg.YieldOp(new_best, position))
    rank = len(shape)
    identity, output = AffineMap(rank, 0, dims(range(rank))), AffineMap(rank, 0, dims(kept))
    generic = linalg.GenericOp(
        [data],
        [values, positions],
        Region(block),
        [AffineMapAttr(identity), AffineMapAttr(output), AffineMapAttr(output)],
        [REDUCTION if position == axis else PARALLEL for position in range(rank)],
        [values.type, positions.type],
        doc=StringAttr(b.name),
    )
    b.emit(generic)
    return generic.results[1]


def _wins(s: Scalars, better: str, x: SSAValue, best: SSAValue) -> SSAValue:
    plain = s.compare(better, x, best)
    if s.kind is not Kind.FLOAT:
        return plain
    # unordered or better: true when x is NaN; but a NaN found before stays
    is_nan = s.emit(arith.CmpfOp(x, x, "uno"))
    found = s.emit(arith.CmpfOp(best, best, "ord"))
    first_nan = s.emit(arith.AndIOp(is_nan, found))
    return s.emit(arith.OrIOp(plain, first_nan))


def _soft(op: relay.SoftmaxLikeOp, b: LinalgBuilder) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Returns the data, its maximum along the axis, and `exp(data - max)`, all in the accumulator
    type.
    """
    type_ = tensor_type(op.data)
    data = b.cast(op.data, accumulator_type(type_.element_type))
    axes = [op.positive_axis]
    peak = fold(b, data, axes, "max", -pymath.inf)
    return data, peak, b.elementwise([data, peak], tensor_type(data), _exp_below)


def _exp_below(s: Scalars, x: SSAValue, peak: SSAValue) -> SSAValue:
    """Emits `exp(x - peak)`."""
    value = s.unary(math.ExpOp, s.sub(x, peak))
    assert isinstance(value.owner, math.ExpOp)
    value.owner.attributes[AT_MOST_ZERO] = UnitAttr()
    return value


def _lower_softmax(op: relay.SoftmaxOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    _, _, exps = _soft(op, b)
    summed = total(b, exps, [op.positive_axis])
    result = b.elementwise([exps, summed], tensor_type(exps), lambda s, x, y: s.div(x, y))
    return [b.cast(result, tensor_type(op.output).element_type)]


def _lower_log_softmax(op: relay.LogSoftmaxOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    data, peak, exps = _soft(op, b)
    summed = total(b, exps, [op.positive_axis])
    logs = b.elementwise([summed], tensor_type(summed), lambda s, x: s.unary(math.LogOp, x))
    result = b.elementwise(
        [data, peak, logs], tensor_type(data), lambda s, x, m, y: s.sub(s.sub(x, m), y)
    )
    return [b.cast(result, tensor_type(op.output).element_type)]


FUNCTIONS: Lowerings = {
    relay.SumOp: _fold_op("add", lambda _: 0),
    relay.ProdOp: _fold_op("mul", lambda _: 1),
    relay.MaxOp: _fold_op("max", _least),
    relay.MinOp: _fold_op("min", _greatest),
    relay.MeanOp: _lower_mean,
    relay.ArgmaxOp: _arg_op("gt", _least),
    relay.ArgminOp: _arg_op("lt", _greatest),
    relay.SoftmaxOp: _lower_softmax,
    relay.LogSoftmaxOp: _lower_log_softmax,
}
