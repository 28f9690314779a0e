"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from byoc_mlir.dialects.relay import RelayOp, elementwise, logic
from byoc_mlir.dialects.relay import reduce as relay
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Value

Step = Callable[[NodeContext, Value], Value]
Reduction = Callable[[NodeContext, Value, Sequence[int] | None, int], Value]
"""Function of context, data, axes (`None`: all) and ONNX's `keepdims`."""


def _itself(context: NodeContext, data: Value) -> Value:
    return data


def _square(context: NodeContext, data: Value) -> Value:
    return context.emit(elementwise.MultiplyOp, data, data)


def _step(op: type[RelayOp]) -> Step:
    return lambda context, data: context.emit(op, data)


def _in_float(context: NodeContext, data: Value) -> Value:
    """Casts integers to f64, so that roots and logarithms of them can be computed.

    `_to_type` casts the result of the reduction back, and truncates it.
    """
    return cast(context, data, np.dtype(np.float64)) if data.dtype.kind in "iu" else data


def _square_in_float(context: NodeContext, data: Value) -> Value:
    return _square(context, _in_float(context, data))


def _log_in_float(context: NodeContext, data: Value) -> Value:
    return context.emit(elementwise.LogOp, _in_float(context, data))


def _to_type(context: NodeContext, result: Value, dtype: np.dtype[Any]) -> Value:
    """Casts the result to the operand's type; floats above its maximum become the maximum."""
    converted = cast(context, result, dtype)
    if result.dtype.kind != "f" or dtype.kind not in "iu":
        return converted
    largest = np.iinfo(dtype).max
    fits = arith.less(context, result, float(largest))
    return arith.where(context, fits, converted, largest)


_REDUCTIONS: dict[str, tuple[Step, type[relay.ReduceOp], Step]] = {
    "ReduceL1": (_step(elementwise.AbsOp), relay.SumOp, _itself),
    "ReduceL2": (_square_in_float, relay.SumOp, _step(elementwise.SqrtOp)),
    "ReduceLogSum": (_itself, relay.SumOp, _log_in_float),
    "ReduceMax": (_itself, relay.MaxOp, _itself),
    "ReduceMean": (_itself, relay.MeanOp, _itself),
    "ReduceMin": (_itself, relay.MinOp, _itself),
    "ReduceProd": (_itself, relay.ProdOp, _itself),
    "ReduceSum": (_itself, relay.SumOp, _itself),
    "ReduceSumSquare": (_square, relay.SumOp, _itself),
}
_ARG_REDUCTIONS: dict[str, type[relay.ArgReduceOp]] = {
    "ArgMax": relay.ArgmaxOp,
    "ArgMin": relay.ArgminOp,
}


def _reduction(before: Step, op: type[relay.ReduceOp], after: Step) -> Reduction:
    def reduced(
        context: NodeContext, data: Value, axes: Sequence[int] | None, keepdims: int
    ) -> Value:
        over = range(data.rank) if axes is None else axes
        result = context.emit(op, before(context, data), axis=over, keepdims=bool(keepdims))
        return _to_type(context, after(context, result), data.dtype)

    return reduced


def _register(op_type: str, reduced: Reduction, axes_input_since: int = 18) -> None:
    @onnx_op(op_type)
    def by_attribute(
        context: NodeContext, data: Value, *, axes: Sequence[int] | None = None, keepdims: int = 1
    ) -> Value:
        return reduced(context, data, axes, keepdims)

    @onnx_op(op_type, since=axes_input_since)
    def by_input(
        context: NodeContext,
        data: Value,
        axes: Value | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Value:
        known = context.ints(axes, "axes") if axes is not None else ()
        if not known and not noop_with_empty_axes:
            return reduced(context, data, None, keepdims)
        return reduced(context, data, known, keepdims)

    del by_attribute, by_input


def _register_arg(op_type: str, op: type[relay.ArgReduceOp]) -> None:
    @onnx_op(op_type)
    def arg_reduced(
        context: NodeContext,
        data: Value,
        *,
        axis: int = 0,
        keepdims: int = 1,
        select_last_index: int = 0,
    ) -> Value:
        return context.emit(
            op,
            data,
            axis=[axis],
            keepdims=bool(keepdims),
            select_last_index=bool(select_last_index),
        )

    del arg_reduced


def _log_sum_exp(
    context: NodeContext, given: Value, axes: Sequence[int] | None, keepdims: int
) -> Value:
    data = _in_float(context, given)
    over = range(data.rank) if axes is None else axes
    peak = context.emit(relay.MaxOp, data, axis=over, keepdims=True)
    # an infinite peak would leave infinity minus infinity
    peak = arith.where(context, context.emit(logic.IsinfOp, peak), 0, peak)
    shifted = context.emit(elementwise.ExpOp, context.emit(elementwise.SubtractOp, data, peak))
    total = context.emit(relay.SumOp, shifted, axis=over, keepdims=bool(keepdims))
    logarithm = context.emit(elementwise.LogOp, total)
    result = arith.add(context, logarithm, arith.reshape(context, peak, total.sizes))
    return _to_type(context, result, given.dtype)


for _op_type, _steps in _REDUCTIONS.items():
    _register(_op_type, _reduction(*_steps), 13 if _op_type == "ReduceSum" else 18)
_register("ReduceLogSumExp", _log_sum_exp)
for _op_type, _arg_op in _ARG_REDUCTIONS.items():
    _register_arg(_op_type, _arg_op)
