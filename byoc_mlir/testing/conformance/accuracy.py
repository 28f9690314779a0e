"""Expected results of a case, and their accepted error.

Results are computed in float64. The accepted error follows from the element types and from the
number of terms in each sum: a sum of `n` terms in a type of precision `eps` has an error of at most
about `eps * n`. f16 values have to be accumulated in f32 and rounded once for each op. Integers and
booleans are exact, except for results that are rounded to a quantised type: a few of their elements
may be one step off, if rounding is close to a tie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.comparison import largest_relative_error
from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.base import relay_name, shape_of, tensor_type
from byoc_mlir.dialects.relay.constant import Array
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.evaluate import evaluate, evaluate_op
from byoc_mlir.transforms.work import estimated_work

SLACK = 64
"""Number of accepted roundings besides those of sums: approximations of functions, of weights, of
scales.
"""

_NEAR_TIES = 1 / 64
"""Share of a quantised result's elements that may be one step off."""

_NOT_ROUNDED_BETWEEN = 1 / 8
"""Share of elements that may be one step off if a backend omits a rounding between two ops."""

_ROUNDS = ("qnn.quantize", "qnn.requantize", "qnn.add", "qnn.multiply", "qnn.avg_pool")
"""Prefixes of the names of ops that round to a quantised type."""

_READS_TYPES = frozenset({"cast", "reinterpret"})
"""Ops whose result depends on the type of their operand, not on its values alone."""


def expected(function: FuncOp, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Computes the results of a function of relay ops in float64, and returns them in the types of
    the function's results.
    """
    ops = [op for op in function.body.block.ops if isinstance(op, RelayOp)]
    if any(relay_name(op) in _READS_TYPES for op in ops):
        return evaluate(function, inputs)
    values: dict[SSAValue, Array] = {
        argument: _wide(array) for argument, array in zip(function.args, inputs, strict=True)
    }
    for op in ops:
        operands = [values[operand] for operand in op.operands]
        found = (op.array,) if isinstance(op, ConstantOp) else evaluate_op(op, operands)
        values |= zip(op.results, map(_wide, found), strict=True)
    with np.errstate(all="ignore"):
        return tuple(values[value].astype(_dtype(value)) for value in _returned(function))


def accepted_error(function: FuncOp) -> float:
    """Returns the maximum accepted error of each result, in the measure of `error_of`."""
    ops = [
        op
        for op in function.body.block.ops
        if isinstance(op, RelayOp) and not isinstance(op, ConstantOp)
    ]
    terms = sum(map(_terms, ops))
    precisions = [_precision(_dtype(value)) for op in ops for value in (*op.operands, *op.results)]
    roundings = sum(relay_name(op).startswith(_ROUNDS) for op in ops)
    if roundings:
        return _NEAR_TIES if roundings == 1 else _NOT_ROUNDED_BETWEEN
    precision = max(precisions, default=0.0)
    single = _precision(np.dtype(np.float32))
    if precision <= single:
        return precision * (SLACK + terms)
    return 2 * len(ops) * precision + single * (SLACK + terms)


def error_of(got: Array, want: Array) -> float:
    """Returns the error of a result, relative to its largest value.

    For integers, returns the share of elements that are one step off; infinity if an element is
    further off.
    """
    if got.dtype != want.dtype:
        return math.inf
    if _precision(want.dtype) > 0:
        return largest_relative_error(got, want)
    if got.shape != want.shape:
        return math.inf
    steps = np.abs(got.astype(object) - want.astype(object))
    if np.any(steps > 1):
        return math.inf
    return np.count_nonzero(steps) / max(steps.size, 1)


def _terms(op: Operation) -> float:
    """Returns the number of terms that are summed for each element of an op's result."""
    written = max(1, sum(math.prod(shape_of(result)) for result in op.results))
    read = math.prod(shape_of(op.operands[0])) if op.operands else 0
    return max(estimated_work(op) / 2, read) / written


def _precision(dtype: np.dtype[Any]) -> float:
    """Returns the distance from 1 to the next value of a type; 0 for integers and booleans."""
    return 0.0 if dtype.kind in "iub" else float(ml_dtypes.finfo(dtype).eps)


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if _precision(array.dtype) > 0 else array


def _dtype(value: SSAValue) -> np.dtype[Any]:
    return numpy_dtype(tensor_type(value).element_type)


def _returned(function: FuncOp) -> Sequence[SSAValue]:
    terminator = function.body.block.last_op
    assert isinstance(terminator, ReturnOp)
    return tuple(terminator.operands)
