"""Ops of detectors, and of networks that sample images at computed positions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    DataOp,
    OneResultOp,
    RelayOp,
    bool_prop,
    check_addressed,
    float_prop,
    int_prop,
    ints,
    ints_prop,
    sizes_of,
    str_prop,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.resampling import OF_ARRAYS, Functions, SampledAxis
from byoc_mlir.dialects.relay.shape import agree, agreeing, same
from byoc_mlir.dialects.relay.window import checked_ints
from byoc_mlir.dims import largest, smallest


@irdl_op_definition
class GridSampleOp(OneResultOp):
    """`data [N, C, d...], grid [N, o..., r] -> output [N, C, o...]`.

    `grid` holds coordinates in [-1, 1], the last dimension of `data` first.
    https://onnx.ai/onnx/operators/onnx__GridSample.html
    """

    name = "relay.image.grid_sample"
    data = operand_def(TensorType)
    grid = operand_def(TensorType)
    method = str_prop("linear", ("nearest", "linear", "cubic"))
    padding_mode = str_prop("zeros", ("zeros", "border", "reflection"))
    align_corners = bool_prop(False)

    def sampled_axis(self, size: int, functions: Functions = OF_ARRAYS) -> SampledAxis:
        """Returns how an axis of `data` is read."""
        aligned = bool(self.align_corners.value.data)
        return SampledAxis(size, self.method.data, self.padding_mode.data, aligned, functions)

    def infer_types(self) -> Sequence[Attribute]:
        data, grid = tensor_type(self.data), tensor_type(self.grid)
        shape, places = type_sizes(data), type_sizes(grid)
        fits = len(shape) == len(places) > 2 and places[-1] == len(shape) - 2
        if not fits or not agree(places[0], shape[0]):
            raise VerifyException(f"{self.name}: grid {grid} does not address data {data}")
        new = [*shape[:2], *places[1:-1]]
        check_addressed(self, shape[2:], new)
        return (tensor_of(data.element_type, new),)


@irdl_op_definition
class RoiAlignOp(OneResultOp):
    """`data [N, C, H, W], rois [R, 4], batch [R] -> output [R, C, h, w]`, `pooled_size` = `[h, w]`.

    A region is `x1, y1, x2, y2`. Samples in each of its bins are interpolated bilinearly; the
    result is their mean (`avg`), or the largest weighted neighbour (`max`). A bin has
    `sample_ratio` samples along each axis, at most 1,024; 0 stands for as many as the bin has
    elements. https://onnx.ai/onnx/operators/onnx__RoiAlign.html
    """

    name = "relay.vision.roi_align"
    data = operand_def(TensorType)
    rois = operand_def(TensorType)
    batch = operand_def(TensorType)
    pooled_size = ints_prop()
    spatial_scale = float_prop(1.0)
    sample_ratio = int_prop(0)
    mode = str_prop("avg", ("avg", "max"))
    aligned = bool_prop(True)

    def infer_types(self) -> Sequence[Attribute]:
        data, rois = tensor_type(self.data), sizes_of(self.rois)
        size, shape = ints(self.pooled_size), type_sizes(data)
        if (
            len(shape) != 4
            or len(size) != 2
            or rois[1:] != (4,)
            or not agreeing(sizes_of(self.batch), rois[:1])
        ):
            raise VerifyException(
                f"{self.name}: regions {self.rois.type} and {self.batch.type} do not fit {data}"
            )
        samples = self.sample_ratio.value.data
        if not 0 <= samples <= _MOST_SAMPLES:
            raise VerifyException(
                f"{self.name}: sample_ratio is {samples}, accepted are 0 to {_MOST_SAMPLES}"
            )
        new = [rois[0], shape[1], *size]
        check_addressed(self, [shape[0], *shape[2:]], new)
        return (tensor_of(data.element_type, new),)


_MOST_SAMPLES = 1024
"""Maximum number of samples along an axis of a bin, so that a model cannot make a run hang."""


@irdl_op_definition
class RoiPoolOp(OneResultOp):
    """`data [N, C, H, W], rois [R, 5] -> output [R, C, h, w]`: the maximum of each bin.

    A region is the index in the batch, then `x1, y1, x2, y2`.
    https://onnx.ai/onnx/operators/onnx__MaxRoiPool.html
    """

    name = "relay.vision.roi_pool"
    data = operand_def(TensorType)
    rois = operand_def(TensorType)
    pooled_size = ints_prop()
    spatial_scale = float_prop(1.0)

    def infer_types(self) -> Sequence[Attribute]:
        data, rois, size = tensor_type(self.data), sizes_of(self.rois), ints(self.pooled_size)
        shape = type_sizes(data)
        if len(shape) != 4 or len(size) != 2 or rois[1:] != (5,):
            raise VerifyException(f"{self.name}: regions {self.rois.type} do not fit {data}")
        new = [rois[0], shape[1], *size]
        check_addressed(self, [shape[0], *shape[2:]], new)
        return (tensor_of(data.element_type, new),)


@irdl_op_definition
class NonMaxSuppressionOp(RelayOp):
    """`boxes [N, B, 4], scores [N, C, B] -> indices [N * C * min(B, max), 3], count []`.

    The first `count` rows of `indices` are the (batch, class, box) that are kept; the other rows
    are zero. `score_threshold`, where given, is exclusive.
    https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html
    """

    name = "relay.vision.non_max_suppression"
    boxes = operand_def(TensorType)
    scores = operand_def(TensorType)
    iou_threshold = operand_def(TensorType)
    score_threshold = opt_operand_def(TensorType)
    max_output_size = int_prop()
    center_point_box = bool_prop(False)
    indices = result_def(TensorType)
    count = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        boxes, scores = sizes_of(self.boxes), sizes_of(self.scores)
        fits = len(boxes) == len(scores) == 3 and boxes[2] == 4
        if not fits or not (agree(boxes[0], scores[0]) and agree(boxes[1], scores[2])):
            raise VerifyException(
                f"{self.name}: scores {self.scores.type} do not fit boxes {self.boxes.type}"
            )
        for value in (self.boxes, self.scores):
            if not isinstance(tensor_type(value).element_type, AnyFloat):
                raise VerifyException(
                    f"{self.name}: boxes and scores must be floats, found {value.type}"
                )
        for threshold in (self.iou_threshold, self.score_threshold):
            self._check_threshold(threshold)
        kept = largest(0, smallest(self.max_output_size.value.data, boxes[1]))
        return (tensor_of(i64, [math.prod(scores[:2]) * kept, 3]), tensor_of(i64, []))

    def _check_threshold(self, value: SSAValue | None) -> None:
        """Refuses a threshold that is not one number of the boxes' type."""
        if value is None:
            return
        element_type = tensor_type(self.boxes).element_type
        is_number = tensor_type(value).element_type == element_type
        if not is_number or not agree(math.prod(sizes_of(value)), 1):
            raise VerifyException(
                f"{self.name}: a threshold is {value.type}, accepted is one {element_type}"
            )


@irdl_op_definition
class DeformableConv2DOp(OneResultOp):
    """Convolution that reads each kernel tap at its position plus a computed offset, bilinearly.

    `data [N, C, H, W], offset [N, G * kh * kw * 2, h, w], weight [O, C / groups, kh, kw], mask [N,
    G * kh * kw, h, w] -> output [N, O, h, w]`, G = `deformable_groups`.
    https://onnx.ai/onnx/operators/onnx__DeformConv.html
    """

    name = "relay.nn.deformable_conv2d"
    data = operand_def(TensorType)
    offset = operand_def(TensorType)
    weight = operand_def(TensorType)
    mask = opt_operand_def(TensorType)
    strides = ints_prop()
    padding = ints_prop()
    dilation = ints_prop()
    groups = int_prop(1)
    deformable_groups = int_prop(1)

    def infer_types(self) -> Sequence[Attribute]:
        data, offset, weight = (
            tensor_type(value) for value in (self.data, self.offset, self.weight)
        )
        shape, kernel, places = type_sizes(data), type_sizes(weight), type_sizes(offset)
        taps = self.deformable_groups.value.data * math.prod(kernel[2:])
        fits = len(shape) == len(kernel) == 4 and agreeing(places[:2], (shape[0], 2 * taps))
        if not fits:
            raise VerifyException(f"{self.name}: {offset} and {weight} do not fit {data}")
        groups, shared = self.groups.value.data, self.deformable_groups.value.data
        fits = (
            min(groups, shared) > 0 and same(kernel[0] % groups, 0) and same(shape[1] % shared, 0)
        )
        if not fits or not agree(shape[1], kernel[1] * groups):
            raise VerifyException(
                f"{self.name}: weight {weight} does not fit data {data} in {groups} groups and"
                f" {shared} of offsets"
            )
        for what, length, least in (("strides", 2, 1), ("padding", 4, 0), ("dilation", 2, 1)):
            checked_ints(self, what, length, least)
        expected = (shape[0], taps, *places[2:])
        if self.mask is not None and not agreeing(sizes_of(self.mask), expected):
            raise VerifyException(f"{self.name}: mask {self.mask.type} does not fit {offset}")
        new = [shape[0], kernel[0], *places[2:]]
        check_addressed(self, shape[2:], new)
        return (tensor_of(data.element_type, new),)


@irdl_op_definition
class DetOp(DataOp):
    """`data [..., M, M] -> output [...]`: determinants."""

    name = "relay.det"

    def infer_types(self) -> Sequence[Attribute]:
        data = tensor_type(self.data)
        shape = type_sizes(data)
        if len(shape) < 2 or not agree(shape[-1], shape[-2]):
            raise VerifyException(f"{self.name}: {data} is no square matrix")
        return (tensor_of(data.element_type, shape[:-2]),)
