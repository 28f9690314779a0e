"""Sampling, regions of interest, detection and determinants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import vision
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.nn import stacked_product
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, Value
from byoc_mlir.limits import check_constant

_METHODS = {"bilinear": "linear", "bicubic": "cubic"}


@onnx_op("GridSample")
def grid_sample(
    context: NodeContext,
    data: Value,
    grid: Value,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Value:
    return context.emit(
        vision.GridSampleOp,
        data,
        grid,
        method=_METHODS.get(mode, mode),
        padding_mode=padding_mode,
        align_corners=bool(align_corners),
    )


@onnx_op("AffineGrid")
def affine_grid(
    context: NodeContext, theta: Value, size: Value, *, align_corners: int = 0
) -> Value:
    """Imports AffineGrid: `theta` times `[x, y, 1]` for all pixels, with coordinates from -1 to
    1.

    The function body of the standard is not used: it divides by zero if an axis has one element.
    """
    whole = context.ints(size, "size")
    batch, sizes, rank = whole[:1], whole[2:], len(whole) - 2
    if rank not in (2, 3) or min(sizes) < 0 or theta.shape != (*batch, rank, rank + 1):
        raise VerifyException(
            f"theta of shape {list(theta.shape)} and size {list(whole)}, accepted are"
            " [N, 2, 3] and [N, C, H, W], or [N, 3, 4] and [N, C, D, H, W]"
        )
    check_constant([*sizes, rank + 1], 8, "the grid of an AffineGrid")
    axes = [_coordinates(count, aligned=bool(align_corners)) for count in sizes]
    places = np.stack([*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(sizes)], axis=-1)
    rows = context.constant(places.reshape(-1, rank + 1), theta.dtype)
    moved = stacked_product(context, rows, arith.transpose(context, theta, (0, 2, 1)))
    return arith.reshape(context, moved, (*batch, *sizes, rank))


def _coordinates(count: int, *, aligned: bool) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Returns the coordinates of an axis's elements between -1 and 1; the ends are ±1 if
    `aligned`.
    """
    if aligned:
        return np.linspace(-1.0, 1.0, count)
    return (2 * np.arange(count) + 1) / count - 1


@dataclass(frozen=True, kw_only=True)
class RoiAttributes:
    """Attributes of RoiAlign in all versions."""

    mode: str = "avg"
    output_height: int = 1
    output_width: int = 1
    sampling_ratio: int = 0
    spatial_scale: float = 1.0


@onnx_op("RoiAlign", since=16, attributes=RoiAttributes)
def roi_align(
    context: NodeContext,
    data: Value,
    rois: Value,
    batch: Value,
    *,
    attributes: RoiAttributes,
    coordinate_transformation_mode: str = "half_pixel",
) -> Value:
    return context.emit(
        vision.RoiAlignOp,
        data,
        rois,
        batch,
        pooled_size=[attributes.output_height, attributes.output_width],
        spatial_scale=attributes.spatial_scale,
        sample_ratio=attributes.sampling_ratio,
        mode=attributes.mode,
        aligned=coordinate_transformation_mode == "half_pixel",
    )


@onnx_op("RoiAlign", attributes=RoiAttributes)
def roi_align_without_shift(
    context: NodeContext, data: Value, rois: Value, batch: Value, *, attributes: RoiAttributes
) -> Value:
    return roi_align(
        context,
        data,
        rois,
        batch,
        attributes=attributes,
        coordinate_transformation_mode="output_half_pixel",
    )


@onnx_op("MaxRoiPool")
def max_roi_pool(
    context: NodeContext,
    data: Value,
    rois: Value,
    *,
    pooled_shape: Sequence[int],
    spatial_scale: float = 1.0,
) -> Value:
    return context.emit(
        vision.RoiPoolOp, data, rois, pooled_size=pooled_shape, spatial_scale=spatial_scale
    )


def kept_boxes(
    context: NodeContext,
    boxes: Value,
    scores: Value,
    most: Value | None = None,
    iou_threshold: Value | None = None,
    score_threshold: Value | None = None,
    *,
    center_point_box: int = 0,
) -> tuple[Value, Value]:
    """Returns the rows `[most, 3]` of a NonMaxSuppression, and the number of valid rows."""
    limit = 0 if most is None else max(0, *context.ints(most, "max_output_boxes_per_class"))
    overlap = context.constant(np.zeros(1, np.float32)) if iou_threshold is None else iou_threshold
    indices, count = context.emit_all(
        vision.NonMaxSuppressionOp,
        boxes,
        scores,
        overlap,
        [] if score_threshold is None else [score_threshold],
        max_output_size=limit,
        center_point_box=bool(center_point_box),
    )
    return indices, count


@onnx_op("NonMaxSuppression")
def non_max_suppression(
    context: NodeContext,
    boxes: Value,
    scores: Value,
    most: Value | None = None,
    iou_threshold: Value | None = None,
    score_threshold: Value | None = None,
    *,
    center_point_box: int = 0,
) -> Value:
    for value in (boxes, scores, most, iou_threshold, score_threshold):
        if value is not None:
            context.known(value, "every input, which decides the output's shape,")
    found, count = kept_boxes(
        context,
        boxes,
        scores,
        most,
        iou_threshold,
        score_threshold,
        center_point_box=center_point_box,
    )
    if found.constant is None or count.constant is None:
        raise NodeRefused("the result is too large to be computed at import")
    return context.constant(found.constant[: int(count.constant.item())])


@onnx_op("DeformConv")
def deform_conv(
    context: NodeContext,
    data: Value,
    weight: Value,
    offset: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    if data.rank != 4:
        raise NodeRefused(f"{data.rank - 2} spatial dimensions are not supported, only 2")
    result = context.emit(
        vision.DeformableConv2DOp,
        data,
        offset,
        weight,
        [] if mask is None else [mask],
        strides=strides or [1, 1],
        padding=pads or [0] * 4,
        dilation=dilations or [1, 1],
        groups=group,
        deformable_groups=offset_group,
    )
    return arith.biased(context, result, bias, 1)


@onnx_op("Det")
def det(context: NodeContext, data: Value) -> Value:
    return context.emit(vision.DetOp, data)
