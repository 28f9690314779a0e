"""Evaluation of element-wise ops; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from byoc_mlir.dialects.operations import operations_in
from byoc_mlir.dialects.relay import elementwise as relay
from byoc_mlir.dialects.relay import logic, nn
from byoc_mlir.dialects.relay.base import RelayOp, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.numpy_ops import elementwise as numpy_elementwise
from byoc_mlir.numpy_ops import integers
from byoc_mlir.numpy_ops.precision import widened
from byoc_mlir.tensors import Array

Evaluator = Callable[..., Any]
"""Function of an op and its operands' arrays, which returns the results."""


def element_dtype(value: SSAValue) -> np.dtype[Any]:
    """Returns the dtype of numpy arrays that hold a tensor value."""
    return numpy_dtype(tensor_type(value).element_type)


def rounded(function: Callable[..., Any], *operands: Array, **attributes: Any) -> Array:
    """Returns a function's result for widened operands, rounded to the first operand's type."""
    result = function(*map(widened, operands), **attributes)
    return np.asarray(result).astype(operands[0].dtype, copy=False)


def in_float(function: Callable[..., Any]) -> Evaluator:
    """Returns the evaluator of a function without attributes, computed in widened types."""

    def apply(op: RelayOp, *operands: Array) -> Array:
        return rounded(function, *operands)

    return apply


def _predicate(function: Callable[..., Any]) -> Evaluator:
    def apply(op: RelayOp, *operands: Array) -> Array:
        return np.asarray(function(*operands), np.bool_)

    return apply


def _clip(op: relay.ClipOp, data: Array) -> Array:
    return numpy_elementwise.clip(data, op.a_min.value.data, op.a_max.value.data)


def _cast(op: relay.CastOp, data: Array) -> Array:
    return integers.convert(data, numpy_dtype(op.dtype))


def _where(op: relay.WhereOp, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


_SHARED = {name: in_float(function) for name, function in numpy_elementwise.FUNCTIONS.items()} | {
    name: _predicate(function) for name, function in numpy_elementwise.PREDICATES.items()
}
_KINDS = [
    kind for kind in operations_in(*map(vars, (relay, logic, nn))) if issubclass(kind, RelayOp)
]

FUNCTIONS: dict[type[RelayOp], Evaluator] = {
    **{
        kind: _SHARED[name]
        for kind in _KINDS
        if (name := kind.name.removeprefix("relay.")) in _SHARED
    },
    relay.CastOp: _cast,
    relay.ClipOp: _clip,
    relay.WhereOp: _where,
}
