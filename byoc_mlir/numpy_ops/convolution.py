"""Convolutions of any type, forward and transposed; `[N, C, *sizes]`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from byoc_mlir.numpy_ops.window import Axis
from byoc_mlir.tensors import Array


def correlate(x: Array, weights: Array, axes: Sequence[Axis], groups: int) -> Array:
    """Returns a convolution for weights `[results, channels of a group, *kernel]`."""
    rank = len(axes)
    padded = np.zeros((*x.shape[:2], *(axis.padded_size for axis in axes)), x.dtype)
    padded[:, :, *(axis.inside for axis in axes)] = x
    windows = np.lib.stride_tricks.sliding_window_view(
        padded, [axis.extent for axis in axes], tuple(range(2, rank + 2))
    )[
        :,
        :,
        *(axis.read_at(0) for axis in axes),
        *(slice(None, None, axis.dilation) for axis in axes),
    ]
    summed = ([1, *range(2 + rank, 2 + 2 * rank)], list(range(1, 2 + rank)))
    results = [
        np.tensordot(part, kernel, summed)
        for part, kernel in zip(
            np.split(windows, groups, 1), np.split(weights, groups), strict=True
        )
    ]
    return np.moveaxis(np.concatenate(results, -1), -1, 1)


def correlate_transposed(
    x: Array,
    weights: Array,
    axes: Sequence[Axis],
    groups: int,
    matmul: Callable[[Array, Array], Array] = np.matmul,
) -> Array:
    """Returns a transposed convolution for weights `[channels, results of a group, *kernel]`: each
    element times the weights, added where it goes.

    The result lies in memory with its channels last.

    Args:
        axes: the windows of the forward convolution that it turns around: as many of them as `x`
            has elements, and `size` is that of the result.
        matmul: multiplies two matrices.
    """
    data, share, results = np.moveaxis(x, 1, -1), len(weights) // groups, weights.shape[1]
    matrices = np.moveaxis(weights, 1, -1)
    whole = [axis.padded_size for axis in axes]
    result = np.zeros((len(x), *whole, groups * results), x.dtype)
    for group in range(groups):
        mine = slice(group * share, (group + 1) * share)
        spread = matmul(
            np.ascontiguousarray(data[..., mine]).reshape(-1, share),
            np.ascontiguousarray(matrices[mine]).reshape(share, -1),
        ).reshape(*data.shape[:-1], *weights.shape[2:], results)
        part = result[..., group * results : (group + 1) * results]
        for place in np.ndindex(*weights.shape[2:]):
            read = (axis.read_at(at) for axis, at in zip(axes, place, strict=True))
            part[:, *read] += spread[:, *(slice(None) for _ in axes), *place]
    return np.moveaxis(result[:, *(axis.inside for axis in axes)], -1, 1)
