"""Ops that move elements; many return views, so ops never write to their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from byoc_mlir.interpreter.ops.errors import NotInterpretedError, axis_of
from byoc_mlir.numpy_ops.movement import pad
from byoc_mlir.tensors import Array


def _shape(x: Array, start: int | None = None, end: int | None = None) -> Array:
    first, last = _bound(start, 0, x.ndim), _bound(end, x.ndim, x.ndim)
    return np.array(x.shape[first:last], np.int64)


def _bound(place: int | None, absent: int, count: int) -> int:
    """Clamps an index to [0, count]; negative indices count from the end."""
    if place is None:
        return absent
    return min(max(place + count if place < 0 else place, 0), count)


def _identity(x: Array) -> Array:
    return x


def _constant(
    value: TensorProto | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
) -> Array:
    if value is not None:
        return numpy_helper.to_array(value)
    integers = value_ints if value_int is None else value_int
    if integers is not None:
        return np.array(integers, np.int64)
    return np.array(value_floats if value_float is None else value_float, np.float32)


def _constant_of_shape(shape: Array, value: TensorProto | None = None) -> Array:
    fill = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    return np.full(tuple(shape.tolist()), fill.reshape(()), fill.dtype)


def _size(x: Array) -> Array:
    return np.array(x.size, np.int64)


def _tile(x: Array, repeats: Array) -> Array:
    if len(repeats) != x.ndim:
        raise NotInterpretedError("repeats that are not those of the axes")
    return np.tile(x, repeats.tolist())


def _trilu(x: Array, k: Array | None = None, upper: int = 1) -> Array:
    diagonal = 0 if k is None else int(k.reshape(()))
    return np.triu(x, diagonal) if upper else np.tril(x, diagonal)


def _depth_to_space(x: Array, blocksize: int, mode: str = "DCR") -> Array:
    batch, channels, height, width = x.shape
    left, block = channels // blocksize**2, blocksize
    if mode == "DCR":
        parts = x.reshape(batch, block, block, left, height, width)
        moved = parts.transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(batch, left, block, block, height, width)
        moved = parts.transpose(0, 1, 4, 2, 5, 3)
    return moved.reshape(batch, left, height * block, width * block)


def _space_to_depth(x: Array, blocksize: int) -> Array:
    batch, channels, height, width = x.shape
    lines, columns = height // blocksize, width // blocksize
    parts = x.reshape(batch, channels, lines, blocksize, columns, blocksize)
    moved = parts.transpose(0, 3, 5, 1, 2, 4)
    return moved.reshape(batch, channels * blocksize**2, lines, columns)


def _reshape(x: Array, shape: Array, allowzero: int = 0) -> Array:
    sizes = shape.tolist()
    if not allowzero and 0 in sizes:
        sizes = [size or x.shape[axis] for axis, size in enumerate(sizes)]
    return x.reshape(sizes)


def _flatten(x: Array, axis: int = 1) -> Array:
    first = x.ndim if axis == x.ndim else axis_of(axis, x.ndim)
    return x.reshape(prod(x.shape[:first]), prod(x.shape[first:]))


def _squeeze(x: Array, axes: Any = None) -> Array:
    if axes is None:
        return x.squeeze()
    if not len(axes):
        raise NotInterpretedError("no axes")
    return x.squeeze(tuple(int(axis) for axis in axes))


def _unsqueeze(x: Array, axes: Any) -> Array:
    rank = x.ndim + len(axes)
    new = {int(axis) + rank if axis < 0 else int(axis) for axis in axes}
    if len(new) != len(axes) or not new <= set(range(rank)):
        raise NotInterpretedError("axes that are not there, or twice")
    old = iter(x.shape)
    return x.reshape([1 if axis in new else next(old) for axis in range(rank)])


def _transpose(x: Array, perm: Sequence[int] | None = None) -> Array:
    return x.transpose(perm or None)


def _range(start: Array, limit: Array, delta: Array) -> Array:
    values: Array = np.arange(start.item(), limit.item(), delta.item())
    return values.astype(start.dtype, copy=False)


def _expand(x: Array, shape: Array) -> Array:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist())))


def _concat(*parts: Array, axis: int = 1) -> Array:
    return np.concatenate(parts, axis)


def _slice(x: Array, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Array:
    named = range(len(starts)) if axes is None else axes
    given = [axis_of(int(axis), x.ndim) for axis in named]
    strides = [1] * len(starts) if steps is None else [int(step) for step in steps]
    if not len(starts) == len(ends) == len(given) == len(strides) or len({*given}) < len(given):
        raise NotInterpretedError("bounds that are not those of the axes, or axes twice")
    parts = [slice(None)] * x.ndim
    for axis, start, end, stride in zip(given, starts, ends, strides, strict=True):
        parts[axis] = _part(x.shape[axis], int(start), int(end), stride)
    return x[tuple(parts)]


def _part(size: int, start: int, end: int, stride: int) -> slice:
    """Returns the slice between two bounds, which are clamped to the axis.

    A backward slice that starts before the first element is empty in Python; in ONNX it has that
    element.
    """
    if not stride:
        raise NotInterpretedError("a step of 0")
    if stride < 0 and end in _WHOLE:
        raise NotInterpretedError(
            "a slice backwards to the largest integer, the first for ONNX Runtime"
        )
    start, end = (place + size if place < 0 else place for place in (start, end))
    if stride > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), stride)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, end if end >= 0 else None, stride) if start > end else slice(0)


_WHOLE = ((1 << 31) - 1, (1 << 63) - 1)
"""Values that exporters write for the end of an axis of any size."""


def _split(
    x: Array, split: Any = None, *, outputs: int, axis: int = 0, num_outputs: int | None = None
) -> tuple[Array, ...]:
    size = x.shape[axis]
    sizes = _equal_sizes(size, outputs, bool(num_outputs)) if split is None else list(split)
    if len(sizes) != outputs or sum(sizes) != size or min(sizes) < 0:
        raise NotInterpretedError("parts that are not those of the axis")
    places = np.cumsum([0, *sizes]).tolist()
    before = (slice(None),) * axis_of(axis, x.ndim)
    return tuple(x[(*before, slice(first, end))] for first, end in pairwise(places))


def _equal_sizes(size: int, count: int, may_differ: bool) -> Sequence[int]:
    """Returns equal part sizes, with a smaller last part if `may_differ`, or [] if impossible."""
    largest = -(-size // count)
    last = size - largest * (count - 1)
    return [largest] * (count - 1) + [last] if may_differ or last == largest else []


def _pad(
    x: Array,
    pads: Any,
    value: Any = None,
    axes: Any = None,
    mode: str = "constant",
) -> Array:
    named = range(x.ndim) if axes is None else axes
    given = [axis_of(int(axis), x.ndim) for axis in named]
    if len(pads) != 2 * len(given) or len({*given}) < len(given):
        raise NotInterpretedError("pads that are not those of the axes, or axes twice")
    widths = [(0, 0)] * x.ndim
    for axis, before, behind in zip(given, pads[: len(given)], pads[len(given) :], strict=True):
        widths[axis] = (int(before), int(behind))
    if mode == "constant":
        fill = np.asarray(0 if value is None else value).reshape(())
        _check_cut(x, widths)
        return pad(x, widths, mode, fill.astype(x.dtype))
    if min(x.shape, default=1) == 0 or min(map(min, widths), default=0) < 0:
        raise NotInterpretedError("pads of nothing, or less than nothing")
    if mode == "reflect" and any(max(w) >= size for w, size in zip(widths, x.shape, strict=True)):
        raise NotInterpretedError("reflections of what is not there")
    return pad(x, widths, mode)


def _check_cut(x: Array, widths: Sequence[tuple[int, int]]) -> None:
    cut = [max(-before, 0) + max(-behind, 0) for before, behind in widths]
    if any(count > size for count, size in zip(cut, x.shape, strict=True)):
        raise NotInterpretedError("pads that cut off more than there is")


OPS: Mapping[str, Callable[..., Any]] = {
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Flatten": _flatten,
    "Identity": _identity,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}
"""Implementations by their names in ONNX."""
