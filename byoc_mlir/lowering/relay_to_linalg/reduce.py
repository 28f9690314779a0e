"""Reductions, softmax and log-softmax."""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import UnitAttr, i32, i64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects.relay import reduce as relay
from byoc_mlir.dialects.relay.base import sizes_of, tensor_of, tensor_type, type_sizes
from byoc_mlir.kernels.f32_functions import AT_MOST_ZERO
from byoc_mlir.lowering.relay_to_linalg.builder import (
    Body,
    LinalgBuilder,
    Lowering,
    Lowerings,
    Read,
    broadcast,
    dims,
)
from byoc_mlir.lowering.relay_to_linalg.computed_types import Kind, accumulator_type, bounds
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars

_MOST_I32 = (1 << 31) - 1
"""Maximum of a signed integer of 32 bits."""

_NOT_IN_16_BITS = 1 + 2**-20
"""A number of `f32` that neither `f16` nor `bf16` has."""


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


def _arg_op(name: str, start: Callable[[Attribute], float]) -> Lowering:
    def lower(op: relay.ArgReduceOp, b: LinalgBuilder) -> Sequence[SSAValue]:
        first = start(tensor_type(op.data).element_type)
        positions = _positions(b, op, fold(b, op.data, op.axes, name, first))
        return [b.reshape(b.cast(positions, i64), sizes_of(op.output))]

    return lower


def _positions(b: LinalgBuilder, op: relay.ArgReduceOp, extreme: SSAValue) -> SSAValue:
    """Computes the position of the extreme value along the axis; NaN if there is one.

    A fold of its own, since a search with two accumulators, value and position, has no vectors.
    """
    shape, (axis,) = sizes_of(op.data), op.axes
    size, element = shape[axis], tensor_type(op.data).element_type
    accumulator = tensor_type(extreme).element_type
    is_last = bool(op.select_last_index.value.data)
    integer = i32 if isinstance(size, int) and size <= _MOST_I32 else i64

    def later(s: Scalars, x: SSAValue, value: SSAValue, found: SSAValue) -> SSAValue:
        fits = _fits(Scalars(s.block, Kind.of(accumulator)), x, value, element)
        place = s.cast(s.index(axis), i64, integer)
        if not is_last:
            place = s.sub(s.size(size, integer), place)
        return s.binary("max", found, s.select(fits, place, s.constant(0, integer)))

    kept = [position for position in range(len(shape)) if position != axis]
    init = b.filled(0, tensor_of(integer, [shape[position] for position in kept]))
    reads = [Read(op.data, dims(range(len(shape)))), broadcast(extreme, shape)]
    found = b.reduce(reads, init, dims(kept), [axis], len(shape), later)
    if is_last:
        return found
    type_ = tensor_type(found)
    return b.elementwise([found], type_, lambda s, x: s.sub(s.size(size, integer), x))


def _fits(s: Scalars, x: SSAValue, extreme: SSAValue, element: Attribute) -> SSAValue:
    """Emits true if `x` of type `element` is the extreme of a row, or NaN where that is NaN."""
    x = s.cast(x, element, extreme.type)
    if s.kind is not Kind.FLOAT:
        return s.compare("eq", x, extreme)
    if element == extreme.type:
        is_nan = s.emit(arith.CmpfOp(x, x, "uno"))
        return s.emit(arith.OrIOp(s.compare("eq", x, extreme), is_nan))
    is_nan = s.emit(arith.CmpfOp(extreme, extreme, "uno"))
    number = s.select(is_nan, s.constant(_NOT_IN_16_BITS, extreme.type), extreme)
    return s.emit(arith.CmpfOp(x, number, "ueq"))  # one comparison for each element


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
    relay.ArgmaxOp: _arg_op("max", _least),
    relay.ArgminOp: _arg_op("min", _greatest),
    relay.SoftmaxOp: _lower_softmax,
    relay.LogSoftmaxOp: _lower_log_softmax,
}
