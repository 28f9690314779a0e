"""Ops that repeat, scatter or select at positions known at import."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import bits, index, logic, transform
from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.dialects.relay.shape import at_most, is_symbolic
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.checked import checked
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Array, NodeRefused, Value, dtype_of
from byoc_mlir.limits import check_constant


@onnx_op("Tile", since=6)
def tile(context: NodeContext, data: Value, repeats: Value) -> Value:
    counts = context.sizes(repeats, "repeats")
    if len(counts) != data.rank:
        raise NodeRefused(f"repeats must have {data.rank} entries, found {list(counts)}")
    pairs = [(count, size) for count, size in zip(counts, data.sizes, strict=True)]
    spread = arith.reshape(context, data, [n for _, size in pairs for n in (1, size)])
    repeated = arith.broadcast(context, spread, [n for pair in pairs for n in pair])
    return arith.reshape(context, repeated, [count * size for count, size in pairs])


@onnx_op("EyeLike")
def eye_like(context: NodeContext, data: Value, *, dtype: int | None = None, k: int = 0) -> Value:
    if data.rank != 2:
        raise VerifyException(f"its input has {data.rank} dimensions, accepted are 2")
    kind = data.dtype if dtype is None else dtype_of(dtype)
    if not is_symbolic(data.sizes):
        check_constant(data.shape, 8, "the matrix of an EyeLike")
    distance = arith.diagonals(context, *data.sizes)
    return cast(context, context.emit(logic.EqualOp, distance, np.int64(k)), kind)


@onnx_op("BitCast")
def bit_cast(context: NodeContext, data: Value, *, to: int) -> Value:
    target = dtype_of(to)
    if target == data.dtype:
        return data
    if np.bool_ in (target, data.dtype):  # a byte that is 0 or 1
        return cast(context, data, target)
    return context.emit(bits.ReinterpretOp, data, dtype=relay_type(target))


@onnx_op("Compress")
def compress(
    context: NodeContext, data: Value, condition: Value, *, axis: int | None = None
) -> Value:
    known = context.known(condition, "the condition")
    if axis is None:
        data, axis = arith.reshape(context, data, [math.prod(data.sizes)]), 0
    along = normalize_axis(axis, data.rank)
    chosen = np.flatnonzero(known)
    while len(chosen) and not at_most(int(chosen[-1]) + 1, data.sizes[along]):
        chosen = chosen[:-1]
    return context.emit(index.TakeOp, data, context.constant(chosen), axis=along)


@onnx_op("NonZero")
def nonzero(context: NodeContext, data: Value) -> Value:
    known = context.known(data, "data, which decides the output's shape,")
    count = np.count_nonzero(known)
    places = np.nonzero(known.reshape(-1))[0]
    coordinates = np.unravel_index(places, known.shape) if known.ndim else ()
    return context.constant(np.reshape(coordinates, (known.ndim, count)), np.int64)


@onnx_op("Unique")
def unique(
    context: NodeContext, data: Value, *, axis: int | None = None, sorted: int = 1
) -> tuple[Value, ...]:
    known = context.known(data, "data, which decides the output's shape,")
    if sorted not in (0, 1):
        raise VerifyException(f"sorted is {sorted}, accepted are 0 and 1")
    if known.dtype == object:
        raise NodeRefused("strings are not compared at import")
    along = normalize_axis(axis, known.ndim) if axis is not None else 0
    entries = known.reshape(-1) if axis is None else known
    if not entries.shape[along]:
        return tuple(map(context.constant, (entries, *[np.zeros(0, np.int64)] * 3)))
    first, inverse, counts = _distinct(entries, along)
    if not sorted:
        order = np.argsort(first)
        first, counts = first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return tuple(map(context.constant, (entries.take(first, along), first, inverse, counts)))


def _distinct(entries: Array, axis: int) -> tuple[Array, Array, Array]:
    """Returns the distinct slices along an axis, in sorted order, as three arrays.

    The arrays hold: for each distinct slice, its first index; for each index of `entries`, the
    number of its slice; for each distinct slice, its count.
    """
    vectors = np.moveaxis(entries, axis, 0).reshape(entries.shape[axis], -1)
    if not vectors.shape[1]:  # all are equal
        vectors = np.zeros((len(vectors), 1), np.int8)
    order = np.lexsort(vectors.T[::-1])
    ranked = vectors[order]
    begins = np.append(True, (ranked[1:] != ranked[:-1]).any(axis=1))
    inverse = np.empty(len(order), np.int64)
    inverse[order] = np.cumsum(begins) - 1
    return order[begins], inverse, np.bincount(inverse)


@onnx_op("TensorScatter")
def tensor_scatter(
    context: NodeContext,
    cache: Value,
    update: Value,
    starts: Value | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Value:
    along, is_circular = normalize_axis(axis, cache.rank), mode == "circular"
    if starts is None:
        first = arith.broadcast(context, context.constant(np.zeros(1, np.int64)), cache.sizes[:1])
    else:
        first = cast(context, starts, np.dtype(np.int64))
        if not is_circular:
            most = cache.sizes[along] - update.sizes[along]
            first = checked(context, first, first, "an element of write_indices", 0, most)
    return context.emit(
        index.UpdateSliceOp, cache, update, first, axis=along, is_circular=is_circular
    )


@onnx_op("Col2Im")
def col2im(
    context: NodeContext,
    data: Value,
    image_shape: Value,
    block_shape: Value,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    if data.dtype == np.bool_:  # true where any is that meets there
        options = {"dilations": dilations, "pads": pads, "strides": strides}
        numbers = cast(context, data, np.dtype(np.int32))
        counted = col2im(context, numbers, image_shape, block_shape, **options)
        return cast(context, counted, data.dtype)
    image, block = context.ints(image_shape, "image_shape"), context.ints(block_shape, "the block")
    rank = len(image)
    steps, spread = strides or [1] * rank, dilations or [1] * rank
    around = pads or [0] * 2 * rank
    padded = [image[i] + around[i] + around[rank + i] for i in range(rank)]
    counts = [(padded[i] - (block[i] - 1) * spread[i] - 1) // steps[i] + 1 for i in range(rank)]
    if min(*counts, *block, *steps, *spread, *image, 1) < 1:
        raise VerifyException(f"blocks of {list(block)} do not fit an image of {list(image)}")
    batch, channels = data.sizes[0], data.number(1) // math.prod(block)
    check_constant([*block, *counts], 8, "the indices of a Col2Im")
    numbers = [size for size in (*padded, batch, channels) if isinstance(size, int)]
    check_constant(numbers, data.dtype.itemsize, "the result of a Col2Im")
    place = np.zeros((), np.int64)
    for i in range(rank):
        line = np.arange(block[i])[:, None] * spread[i] + np.arange(counts[i]) * steps[i]
        place = place[..., None, None] * padded[i] + line
    order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]
    places = place.transpose(order).reshape(-1, 1)
    planes = batch * channels
    columns = arith.reshape(context, data, [planes, places.size])
    updates = arith.transpose(context, columns, [1, 0])
    empty = context.constant(np.zeros((math.prod(padded), planes), data.dtype))
    summed = context.emit(
        index.ScatterNdOp, empty, context.constant(places), updates, reduction="add"
    )
    result = arith.reshape(
        context, arith.transpose(context, summed, [1, 0]), [batch, channels, *padded]
    )
    cropped = [0, 0, 0, 0]
    for i in range(rank):
        cropped += [-around[i], -around[rank + i]]
    return context.emit(transform.PadOp, result, pad_width=cropped) if any(around) else result


@onnx_op("MaxUnpool")
def max_unpool(
    context: NodeContext,
    data: Value,
    indices: Value,
    output_shape: Value | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    rank = len(kernel_shape)
    steps, around = strides or [1] * rank, pads or [0] * 2 * rank
    if (data.rank, len(steps), len(around)) != (rank + 2, rank, 2 * rank):
        raise VerifyException(
            f"strides {list(steps)} and pads {list(around)} do not fit a window of rank {rank} and"
            f" an input of rank {data.rank}"
        )
    if min(*steps, *kernel_shape) < 1:
        raise VerifyException(
            f"kernel_shape {list(kernel_shape)} and strides {list(steps)}, accepted are 1 and more"
        )
    spatial = [
        (data.sizes[i + 2] - 1) * steps[i] - around[i] - around[rank + i] + kernel_shape[i]
        for i in range(rank)
    ]
    shape = [*data.sizes[:2], *spatial]
    count = math.prod(data.sizes)
    numbers = [size for size in shape if isinstance(size, int)]
    if len(numbers) == len(shape):
        check_constant(numbers, data.dtype.itemsize, "the elements of a MaxUnpool")
    if not all(at_most(0, size) for size in spatial):
        raise VerifyException(f"a result of shape {shape}, sizes must be 0 and more")
    zero = context.constant(np.zeros(1, data.dtype))
    empty = arith.broadcast(context, zero, [math.prod(shape)])
    places, values = (arith.reshape(context, value, [count]) for value in (indices, data))
    flat = context.emit(index.ScatterElementsOp, empty, places, values, axis=0)
    result = arith.reshape(context, flat, shape)
    if output_shape is None:
        return result
    wanted = context.sizes(output_shape, "output_shape")
    if list(wanted) == shape:
        return result
    widths = [n for new, old in zip(wanted, shape, strict=True) for n in (0, new - old)]
    return context.emit(transform.PadOp, result, pad_width=widths)
