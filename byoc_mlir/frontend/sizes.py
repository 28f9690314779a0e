"""Symbolic evaluation of `relay` ops on integer tensors that hold dimensions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.dialects.relay import RelayOp, elementwise, index, logic, reduce, transform
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.evaluate import semantics_of
from byoc_mlir.dialects.relay.shape import at_most, is_symbolic, same, shape_of, sizes_of
from byoc_mlir.dims import Dim, Size, floordiv, largest, smallest
from byoc_mlir.tensors import Array


@dataclass(frozen=True, eq=False)
class SizeTensor:
    """Tensor of integers, some of them symbolic: an array of numbers and `Dim`s."""

    items: Array
    dtype: np.dtype[Any]

    @property
    def flat(self) -> tuple[Size, ...]:
        """Returns the items in row-major order."""
        return tuple(self.items.reshape(-1).tolist())


Content: TypeAlias = Array | SizeTensor


def size_content(items: Array, dtype: np.dtype[Any]) -> Content:
    """Returns items as content; if all of them are numbers, as a plain array."""
    if any(isinstance(item, Dim) for item in items.reshape(-1)):
        return SizeTensor(items, dtype)
    return items.astype(dtype)


def size_array(sizes: Size | Sequence[Size]) -> Array:
    """Returns sizes as an array of objects, of rank 0 or 1."""
    if isinstance(sizes, int | Dim):
        items = np.empty((), object)
        items[()] = sizes
        return items
    items = np.empty(len(sizes), object)
    items[:] = sizes
    return items


def computed_sizes(op: RelayOp, operands: Sequence[Content]) -> list[Content] | None:
    """Returns the results of an op on symbolic integers.

    Returns `None` if no rule computes the op, a result's shape is symbolic, or `i64` may overflow.
    """
    if any(is_symbolic(sizes_of(result)) for result in op.results):
        return None
    arrays = [each.items if isinstance(each, SizeTensor) else each for each in operands]
    semantics = semantics_of(type(op)) if _is_move(op, operands) else None
    if semantics is not None:
        moved: object = semantics(op, *arrays)  # numpy hands out a single object bare
        found = moved if isinstance(moved, list | tuple) else (moved,)
    elif isinstance(op, elementwise.CastOp):
        if numpy_dtype(op.dtype).kind != "i":
            return None
        found = (arrays[0],)
    elif type(op) in _ELEMENTWISE and all(array.dtype.kind in "iuO" for array in arrays):
        found = (np.asarray(np.frompyfunc(_ELEMENTWISE[type(op)], len(arrays), 1)(*arrays)),)
    elif isinstance(op, elementwise.WhereOp) and arrays[0].dtype == np.bool_:
        found = (np.where(arrays[0], *(array.astype(object) for array in arrays[1:])),)
    elif isinstance(op, reduce.ReduceOp) and type(op) in _REDUCTIONS:
        found = (_reduced(op, arrays[0]),)
    else:
        return None
    types = [numpy_dtype(tensor_type(result).element_type) for result in op.results]
    objects = [np.asarray(array, object) for array in found]
    if any(_may_overflow(item) for array in objects for item in array.reshape(-1)):
        return None
    return [size_content(array, dtype) for array, dtype in zip(objects, types, strict=True)]


def _is_move(op: RelayOp, operands: Sequence[Content]) -> bool:
    """True if the op moves elements of its operands from constant positions."""
    if isinstance(op, index.TakeOp):
        return isinstance(operands[1], np.ndarray)
    return type(op) in _MOVES


def _may_overflow(item: object) -> bool:
    """True if an item is symbolic with a constant so large that `i64` may overflow.

    An example of such a constant is the one that stands for the end of an axis in slices.
    """
    return isinstance(item, Dim) and any(abs(factor) >= _ENORMOUS for _, factor in item.terms)


_ENORMOUS = 1 << 62


def _reduced(op: reduce.ReduceOp, items: Array) -> Array:
    combine = np.frompyfunc(_REDUCTIONS[type(op)], 2, 1)
    total = items
    for axis in reversed(op.axes):
        total = np.asarray(combine.reduce(total, axis=axis), object)
    return total.reshape(shape_of(op.output))


def _modulo(one: Size, two: Size) -> Size:
    return one - two * floordiv(one, two)


def _differ(one: Size, two: Size) -> bool:
    return not same(one, two)


def _at_least(one: Size, two: Size) -> bool:
    return at_most(two, one)


def _less(one: Size, two: Size) -> bool:
    return not at_most(two, one)


def _quotient(one: Size, two: Size) -> Size:
    """Returns the quotient, rounded toward zero like all integer division."""
    if at_most(1, two):
        return floordiv(one, two) if at_most(0, one) else -floordiv(-one, two)
    return _quotient(-one, -two)


def _greater(one: Size, two: Size) -> bool:
    return not at_most(one, two)


_MOVES = frozenset(
    {
        transform.BroadcastToOp,
        transform.ConcatenateOp,
        transform.ExpandDimsOp,
        transform.ReshapeOp,
        transform.SplitOp,
        transform.SqueezeOp,
        transform.StridedSliceOp,
        transform.TransposeOp,
    }
)
"""Ops that only move elements, so that numpy can compute them on objects."""

_ELEMENTWISE: Mapping[type[RelayOp], Callable[..., Any]] = {
    elementwise.AddOp: operator.add,
    elementwise.SubtractOp: operator.sub,
    elementwise.MultiplyOp: operator.mul,
    elementwise.DivideOp: _quotient,
    elementwise.FloorModOp: _modulo,
    elementwise.NegativeOp: operator.neg,
    elementwise.MaximumOp: largest,
    elementwise.MinimumOp: smallest,
    logic.EqualOp: same,
    logic.NotEqualOp: _differ,
    logic.LessEqualOp: at_most,
    logic.GreaterEqualOp: _at_least,
    logic.LessOp: _less,
    logic.GreaterOp: _greater,
}

_REDUCTIONS: Mapping[type[RelayOp], Callable[..., Any]] = {
    reduce.MaxOp: largest,
    reduce.MinOp: smallest,
    reduce.ProdOp: operator.mul,
    reduce.SumOp: operator.add,
}
