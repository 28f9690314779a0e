"""Sequences and optionals; their structure is known at import, so the IR needs no types for
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import AbsentValue, NodeRefused, SequenceValue, Value


def _items(value: Value) -> tuple[Value, ...]:
    if not isinstance(value, SequenceValue):
        raise NodeRefused("a sequence is expected, found a tensor")
    return value.items


def _place(context: NodeContext, position: Value, count: int) -> int:
    place = int(context.number(position, "the position"))
    if not -count <= place < count:
        raise NodeRefused(f"position {place} is outside of the sequence of {count}")
    return place % count


@onnx_op("SequenceEmpty")
def sequence_empty(context: NodeContext, *, dtype: int = 1) -> Value:
    return SequenceValue(context.name, ())


@onnx_op("SequenceConstruct")
def sequence_construct(context: NodeContext, *items: Value) -> Value:
    return SequenceValue(context.name, items)


@onnx_op("SequenceLength")
def sequence_length(context: NodeContext, sequence: Value) -> Value:
    return context.constant(np.int64(len(_items(sequence))))


@onnx_op("SequenceAt")
def sequence_at(context: NodeContext, sequence: Value, position: Value) -> Value:
    items = _items(sequence)
    return items[_place(context, position, len(items))]


@onnx_op("SequenceInsert")
def sequence_insert(
    context: NodeContext, sequence: Value, item: Value, position: Value | None = None
) -> Value:
    items = list(_items(sequence))
    place = len(items)
    if position is not None:
        place = int(context.number(position, "the position"))
    if not -len(items) <= place <= len(items):
        raise NodeRefused(f"position {place} is outside of the sequence of {len(items)}")
    items.insert(place, item)
    return SequenceValue(context.name, items)


@onnx_op("SequenceErase")
def sequence_erase(context: NodeContext, sequence: Value, position: Value | None = None) -> Value:
    items = list(_items(sequence))
    if not items:
        raise NodeRefused("the sequence has no item that could be erased")
    del items[-1 if position is None else _place(context, position, len(items))]
    return SequenceValue(context.name, items)


@onnx_op("SplitToSequence")
def split_to_sequence(
    context: NodeContext,
    data: Value,
    split: Value | None = None,
    *,
    axis: int = 0,
    keepdims: int = 1,
) -> Value:
    place = normalize_axis(axis, data.rank)
    size = data.shape[place]
    chunk = 1 if split is None else context.known(split, "split")
    if np.min(chunk, initial=1) < (1 if np.ndim(chunk) == 0 else 0):
        raise VerifyException(
            f"split is {np.asarray(chunk).tolist()}, accepted is one number of 1 and more, or"
            " several of 0 and more"
        )
    if np.ndim(chunk) == 0:
        starts = [*range(0, size, int(chunk)), size]
    else:
        starts = [0, *np.cumsum(chunk).tolist()]
    parts = [arith.section(context, data, place, begin, end) for begin, end in pairwise(starts)]
    if split is None and not keepdims:
        shape = [length for at, length in enumerate(data.shape) if at != place]
        parts = [arith.reshape(context, part, shape) for part in parts]
    return SequenceValue(context.name, parts)


@onnx_op("ConcatFromSequence")
def concat_from_sequence(
    context: NodeContext, sequence: Value, *, axis: int, new_axis: int = 0
) -> Value:
    parts: Sequence[Value] = _items(sequence)
    if not parts:
        raise NodeRefused("the sequence is empty")
    if new_axis:
        place = normalize_axis(axis, parts[0].rank + 1)
        parts = [
            arith.reshape(context, part, (*part.shape[:place], 1, *part.shape[place:]))
            for part in parts
        ]
        return arith.concatenate(context, parts, place)
    return arith.concatenate(context, parts, axis)


@onnx_op("Optional")
def optional(context: NodeContext, value: Value | None = None, *, type: Any = None) -> Value:
    return AbsentValue(context.name) if value is None else value


@onnx_op("OptionalHasElement")
def optional_has_element(context: NodeContext, value: Value | None = None) -> Value:
    return context.constant(value is not None and not isinstance(value, AbsentValue))


@onnx_op("OptionalGetElement")
def optional_get_element(context: NodeContext, value: Value) -> Value:
    if isinstance(value, AbsentValue):
        raise NodeRefused("the optional has no element")
    return value
