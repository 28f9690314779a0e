"""Evaluation of ops on images, of detectors and of computed sampling; see `evaluate`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from byoc_mlir.dialects.relay import vision as relay
from byoc_mlir.dialects.relay.base import RelayOp, ints, shape_of
from byoc_mlir.dialects.relay.image import ResizeOp
from byoc_mlir.dialects.relay.resampling import SampledAxis
from byoc_mlir.numpy_ops.detection import non_max_suppression
from byoc_mlir.numpy_ops.precision import widened
from byoc_mlir.tensors import Array


@dataclass(frozen=True)
class _AxisReads:
    """Elements to read along an axis, one per point: index, weight, and True if inside the data."""

    place: Array
    weight: Array
    inside: Array


def _interpolated(planes: Array, axes: Sequence[Sequence[_AxisReads]]) -> Array:
    """Returns `planes [C, d...]` interpolated at every point: `[C, points...]`; zero outside."""
    total: Array = np.zeros(())
    for taps in itertools.product(*axes):
        weight = math.prod(tap.weight for tap in taps)
        inside = np.logical_and.reduce([tap.inside for tap in taps])
        read = planes[(slice(None), *(tap.place for tap in taps))]
        total = total + np.where(inside, read, 0) * weight
    return total


def _taps(axis: SampledAxis, x: Array) -> list[_AxisReads]:
    base = axis.base(x)
    taps: list[_AxisReads] = []
    for number, weight in axis.weights(x - base).items():
        place, inside = base + number, np.ones_like(x, np.bool_)
        if axis.padding == "zeros":
            inside = (place >= 0) & (place < axis.size)
        elif axis.padding == "reflection":
            place = np.trunc(axis.mirrored(place))
        known = np.clip(np.nan_to_num(place), 0, axis.size - 1).astype(np.int64)
        taps.append(_AxisReads(known, weight, inside))
    return taps


def _grid_sample(op: relay.GridSampleOp, data: Array, grid: Array) -> Array:
    sizes = data.shape[2:]
    images: list[Array] = []
    for planes, points in zip(widened(data), widened(grid), strict=True):
        taps = [
            _taps(axis, axis.coordinate(points[..., -1 - number]))
            for number, axis in enumerate(map(op.sampled_axis, sizes))
        ]
        images.append(_interpolated(planes, taps))
    return np.stack(images).astype(data.dtype)


def _deformable_conv2d(
    op: relay.DeformableConv2DOp, data: Array, offset: Array, weight: Array, *mask: Array
) -> Array:
    batch, _, *sizes = data.shape
    _, _, *kernel = weight.shape
    places = offset.shape[2:]
    groups, deformable = op.groups.value.data, op.deformable_groups.value.data
    lines = offset.reshape(batch, deformable, *kernel, 2, *places)
    planes = data.reshape(batch, deformable, -1, *sizes)
    columns = np.empty((batch, deformable, planes.shape[2], *kernel, *places), np.float64)
    steps, around, spread = ints(op.strides), ints(op.padding), ints(op.dilation)
    grids = np.meshgrid(*(np.arange(size) for size in places), indexing="ij")
    for at in np.ndindex(batch, deformable, *kernel):
        axes = [
            _taps(
                SampledAxis(sizes[axis]),
                grids[axis] * steps[axis]
                - around[axis]
                + at[axis + 2] * spread[axis]
                + lines[(*at, axis)],
            )
            for axis in range(2)
        ]
        columns[(*at[:2], slice(None), *at[2:])] = _interpolated(planes[at[:2]], axes)
    if mask:
        columns *= mask[0].reshape(batch, deformable, 1, *kernel, *places)
    columns = columns.reshape(batch, groups, -1, *kernel, *places)
    filters = weight.reshape(groups, -1, *weight.shape[1:])
    result = np.einsum("ngcijhw,gocij->ngohw", columns, filters)
    return result.reshape(shape_of(op.output)).astype(data.dtype)


def _corner_taps(x: float, size: int) -> list[tuple[int, float]]:
    low = min(int(max(x, 0.0)), size - 1)
    rest = 0.0 if low >= size - 1 else max(x, 0.0) - low
    return [(low, 1 - rest), (min(low + 1, size - 1), rest)]


def _roi_align(op: relay.RoiAlignOp, data: Array, rois: Array, batch: Array) -> Array:
    result = np.zeros(shape_of(op.output), data.dtype)
    sizes, pooled = data.shape[2:], ints(op.pooled_size)
    ratio, aligned = op.sample_ratio.value.data, bool(op.aligned.value.data)
    for number, (roi, image) in enumerate(zip(rois, batch, strict=True)):
        ends = roi.astype(np.float64) * op.spatial_scale.value.data - (0.5 if aligned else 0.0)
        lengths = [ends[3] - ends[1], ends[2] - ends[0]]
        lengths = lengths if aligned else [max(length, 1.0) for length in lengths]
        steps = [length / size for length, size in zip(lengths, pooled, strict=True)]
        counts = [ratio if ratio > 0 else max(0, math.ceil(step)) for step in steps]
        for bin_ in np.ndindex(*pooled):
            samples: list[Array] = []
            for sample in np.ndindex(*counts):
                y, x = (
                    ends[1 - axis]
                    + bin_[axis] * steps[axis]
                    + (sample[axis] + 0.5) * steps[axis] / counts[axis]
                    for axis in range(2)
                )
                samples.append(_neighbours(data[image], y, x, sizes))
            if not samples:
                continue
            stacked = np.stack(samples)
            is_max = op.mode.data == "max"
            value = stacked.max((0, 1)) if is_max else stacked.sum(1).mean(0)
            result[(number, slice(None), *bin_)] = value
    return result


def _neighbours(planes: Array, y: float, x: float, sizes: Sequence[int]) -> Array:
    """Returns the four weighted neighbours of a point: `[4, C]`."""
    if not (-1.0 <= y <= sizes[0] and -1.0 <= x <= sizes[1]):
        return np.zeros((4, planes.shape[0]))
    return np.stack(
        [
            planes[:, row, column] * (one * two)
            for row, one in _corner_taps(y, sizes[0])
            for column, two in _corner_taps(x, sizes[1])
        ]
    )


def _roi_pool(op: relay.RoiPoolOp, data: Array, rois: Array) -> Array:
    result = np.zeros(shape_of(op.output), data.dtype)
    pooled, sizes = ints(op.pooled_size), data.shape[2:]
    for number, roi in enumerate(rois):
        scaled = roi[1:].astype(np.float64) * op.spatial_scale.value.data
        ends = np.trunc(scaled + np.copysign(0.5, scaled))
        for bin_ in np.ndindex(*pooled):
            part: list[slice] = []
            for axis in range(2):
                start, end = ends[1 - axis], ends[3 - axis]
                step = max(end - start + 1, 1) / pooled[axis]
                low = np.floor(bin_[axis] * step) + start
                high = np.ceil((bin_[axis] + 1) * step) + start
                part.append(slice(_as_place(low, sizes[axis]), _as_place(high, sizes[axis])))
            window = data[(_as_place(roi[0], len(data) - 1), slice(None), *part)]
            if window[0].size:
                result[(number, slice(None), *bin_)] = window.max((1, 2))
    return result


def _as_place(number: float, most: int) -> int:
    """Returns an integral float as an index from 0 to `most`; NaN as 0, as in compiled code."""
    return int(np.clip(np.nan_to_num(number), 0, most))


def _non_max_suppression(
    op: relay.NonMaxSuppressionOp, boxes: Array, scores: Array, limit: Array, *least: Array
) -> Sequence[Array]:
    rows = non_max_suppression(
        boxes,
        scores,
        op.max_output_size.value.data,
        limit.reshape(-1)[0],
        least[0].reshape(-1)[0] if least else None,
        centred=bool(op.center_point_box.value.data),
    )
    indices = np.zeros(shape_of(op.indices), np.int64)
    indices[: len(rows)] = rows
    return indices, np.array(len(rows), np.int64)


def rounded_to(values: Array, dtype: np.dtype[Any]) -> Array:
    """Converts values to another type; integers are rounded and saturate."""
    if dtype.kind not in "iu":
        return values.astype(dtype)
    info = ml_dtypes.iinfo(dtype)
    return np.clip(np.round(values), info.min, info.max).astype(dtype)


def _resize(op: ResizeOp, data: Array) -> Array:
    nearest = op.method.data == "nearest"
    result = data if nearest else data.astype(np.float64)
    for axis, taps in op.resized_axes():
        gathered = np.take(result, taps.positions, axis)
        if nearest:
            result = gathered.squeeze(axis + 1)
        else:
            weights = taps.weights.reshape(*taps.weights.shape, *[1] * (data.ndim - axis - 1))
            result = (gathered * weights).sum(axis + 1)
        outside = taps.outside.reshape(-1, *[1] * (data.ndim - axis - 1))
        if outside.any():
            value = result.dtype.type(op.extrapolation_value.value.data)
            result = np.where(outside, value, result)
    return rounded_to(result, data.dtype)


def _det(op: relay.DetOp, data: Array) -> Array:
    return np.asarray(np.linalg.det(widened(data))).astype(data.dtype)


FUNCTIONS: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    relay.DeformableConv2DOp: _deformable_conv2d,
    relay.DetOp: _det,
    relay.GridSampleOp: _grid_sample,
    relay.NonMaxSuppressionOp: _non_max_suppression,
    ResizeOp: _resize,
    relay.RoiAlignOp: _roi_align,
    relay.RoiPoolOp: _roi_pool,
}
