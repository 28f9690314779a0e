"""Numpy semantics of convolutions; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from byoc_mlir.dialects.relay import window as relay
from byoc_mlir.dialects.relay.base import RelayOp, shape_of
from byoc_mlir.dialects.relay.evaluate.elementwise import element_dtype, widened
from byoc_mlir.tensors import Array


def windows_of(op: relay.WindowOp, data: Array, kernel: Sequence[int], fill: Any) -> Array:
    """`[N, C, output..., kernel...]`: the elements under every window, `fill` outside of `data`."""
    strides, padding, dilation = op.checked_window()
    n = op.SPATIAL_RANK
    widths = [(0, 0), (0, 0)]
    for axis, size in enumerate(shape_of(op.output)[2:]):
        reach = (size - 1) * strides[axis] + (kernel[axis] - 1) * dilation[axis] + 1
        before = padding[axis]
        widths.append((before, max(0, reach - before - data.shape[axis + 2])))
    padded = np.pad(data, widths, constant_values=fill)
    extents = [(size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(padded, extents, tuple(range(2, n + 2)))
    places = tuple(
        slice(0, (size - 1) * stride + 1, stride)
        for size, stride in zip(shape_of(op.output)[2:], strides, strict=True)
    )
    return view[(..., *places, *(slice(None, None, step) for step in dilation))]


def correlate(op: relay.CorrelationOp, data: Array, weight: Array) -> Array:
    """A convolution of arrays of one type."""
    n, groups = op.SPATIAL_RANK, op.groups.value.data
    windows = windows_of(op, widened(data), weight.shape[2:], 0)
    axes = ([1, *range(2 + n, 2 + 2 * n)], list(range(1, 2 + n)))
    results = [
        np.tensordot(part, kernel, axes)
        for part, kernel in zip(
            np.split(windows, groups, 1), np.split(widened(weight), groups), strict=True
        )
    ]
    return np.moveaxis(np.concatenate(results, -1), -1, 1).astype(element_dtype(op.output))


def correlate_transposed(op: relay.TransposedCorrelationOp, data: Array, weight: Array) -> Array:
    """A transposed convolution of arrays of one type."""
    strides, padding, dilation = op.checked_window()
    n, groups, shape = op.SPATIAL_RANK, op.groups.value.data, shape_of(op.output)
    kernel = weight.shape[2:]
    full = [
        max(
            (size - 1) * stride + (extent - 1) * step + 1,
            before + out,
        )
        for size, stride, extent, step, before, out in zip(
            data.shape[2:], strides, kernel, dilation, padding, shape[2:], strict=False
        )
    ]
    result = np.zeros((*shape[:2], *full), widened(data).dtype)
    parts = np.split(widened(data), groups, 1)
    weights = np.split(widened(weight), groups)
    for offset in product(*map(range, kernel)):
        places = tuple(
            slice(at * step, at * step + (size - 1) * stride + 1, stride)
            for at, step, size, stride in zip(
                offset, dilation, data.shape[2:], strides, strict=True
            )
        )
        added = [
            np.tensordot(part, tap[(..., *offset)], ([1], [0]))
            for part, tap in zip(parts, weights, strict=True)
        ]
        result[(slice(None), slice(None), *places)] += np.moveaxis(np.concatenate(added, -1), -1, 1)
    kept = tuple(
        slice(before, before + out) for before, out in zip(padding[:n], shape[2:], strict=True)
    )
    return result[(slice(None), slice(None), *kept)].astype(element_dtype(op.output))


WINDOW: dict[type[RelayOp], Callable[..., Array]] = {
    **dict.fromkeys(relay.CONV.values(), correlate),
    **dict.fromkeys(relay.CONV_TRANSPOSE.values(), correlate_transposed),
}
