"""Simple kernels in numpy for recurrent layers, and for ops at computed positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Kernel: TypeAlias = Callable[..., Array | Sequence[Array]]
"""Function from the op's attributes and operands to its result or results."""


def wide(array: Array) -> Array:
    """Returns an f16 array as f32."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


def sigmoid(x: Array) -> Array:
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def _steps(attrs: Mapping[str, Any], data: Array, direction: int) -> Iterable[int]:
    """Returns the steps in the order in which a direction takes them."""
    backward = attrs["direction"] == "reverse" or direction == 1
    return reversed(range(len(data))) if backward else range(len(data))


def lstm(
    attrs: Mapping[str, Any], data: Array, weight: Array, hidden: Array, cell: Array
) -> Sequence[Array]:
    data, weight, h, c = wide(data), wide(weight), wide(hidden).copy(), wide(cell).copy()
    output = np.empty((*data.shape[:3], h.shape[-1]), data.dtype)
    for d in range(data.shape[1]):
        for t in _steps(attrs, data, d):
            i, o, f, g = np.split(data[t, d] + h[d] @ weight[d], 4, -1)
            c[d] = sigmoid(f) * c[d] + sigmoid(i) * np.tanh(g)
            h[d] = output[t, d] = sigmoid(o) * np.tanh(c[d])
    return output, h, c


def gru(
    attrs: Mapping[str, Any], data: Array, weight: Array, bias: Array, hidden: Array
) -> Sequence[Array]:
    data, weight, bias, h = wide(data), wide(weight), wide(bias), wide(hidden).copy()
    output = np.empty((*data.shape[:3], h.shape[-1]), data.dtype)
    for d in range(data.shape[1]):
        for t in _steps(attrs, data, d):
            z, r, n = np.split(h[d] @ weight[d] + bias[d], 3, -1)
            given = np.split(data[t, d], 3, -1)
            z, r = sigmoid(given[0] + z), sigmoid(given[1] + r)
            if attrs["linear_before_reset"]:
                n = r * n
            else:
                n = (r * h[d]) @ np.split(weight[d], 3, -1)[2] + np.split(bias[d], 3, -1)[2]
            h[d] = output[t, d] = (1 - z) * np.tanh(given[2] + n) + z * h[d]
    return output, h


def topk(attrs: Mapping[str, Any], data: Array) -> Sequence[Array]:
    axis = attrs["axis"]
    if attrs["is_ascend"]:
        order = np.argsort(data, axis, kind="stable")
    else:
        order = (
            data.shape[axis] - 1 - np.flip(np.argsort(np.flip(data, axis), axis, "stable"), axis)
        )
    places = np.take(order, range(attrs["k"]), axis)
    return np.take_along_axis(data, places, axis), places


COMBINED: Mapping[str, Callable[[Any, Any], Any]] = {
    "update": lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def scatter_elements(
    attrs: Mapping[str, Any], data: Array, indices: Array, updates: Array
) -> Array:
    result, axis = data.copy(), attrs["axis"] % data.ndim
    combined = COMBINED[attrs["reduction"]]
    for at in np.ndindex(indices.shape):
        place = (*at[:axis], indices[at], *at[axis + 1 :])
        result[place] = combined(result[place], updates[at])
    return result


def roi_pool(attrs: Mapping[str, Any], data: Array, rois: Array) -> Array:
    result = np.zeros(attrs["shape"], data.dtype)
    (height, width), sizes = attrs["pooled_size"], data.shape[2:]
    for number, (image, *corners) in enumerate(rois.astype(np.float64)):
        left, top, right, bottom = np.floor(np.array(corners) * attrs["spatial_scale"] + 0.5)
        tall, broad = max(bottom - top + 1, 1) / height, max(right - left + 1, 1) / width
        for y, x in np.ndindex(height, width):
            rows = np.clip([top + np.floor(y * tall), top + np.ceil((y + 1) * tall)], 0, sizes[0])
            columns = np.clip(
                [left + np.floor(x * broad), left + np.ceil((x + 1) * broad)], 0, sizes[1]
            )
            (low, high), (first, last) = rows.astype(int), columns.astype(int)
            part = data[int(image), :, low:high, first:last]
            if part.size:
                result[number, :, y, x] = part.max((1, 2))
    return result
