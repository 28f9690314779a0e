"""Resize and Upsample."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, FloatAttr
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import image
from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, Value


@dataclass(frozen=True)
class _Target:
    """Output shape of a resize, with scale factors and region of interest for all dimensions."""

    size: tuple[Size, ...]
    scales: tuple[float, ...] | None
    """Scale factors; `None` stands for the quotients of output and input sizes."""
    roi: tuple[float, ...] | None = None

    @property
    def factors(self) -> ArrayAttr[FloatAttr] | None:
        """Returns the scale factors as an attribute of the op."""
        return None if self.scales is None else image.floats_attribute(self.scales)


def _numbers(context: NodeContext, value: Value | None, what: str) -> list[float]:
    if value is None:
        return []
    return [float(item) for item in context.known(value, what).reshape(-1)]


def _scaled(data: Value, scales: Sequence[float], axes: Sequence[int]) -> _Target:
    if not all(0 < scale < math.inf for scale in scales):
        raise VerifyException(f"scales are {list(scales)}, accepted are finite numbers above 0")
    full = [1.0] * data.rank
    for axis, scale in zip(axes, scales, strict=True):
        full[axis] = scale
    size = [_times(old, scale) for old, scale in zip(data.sizes, full, strict=True)]
    return _Target(tuple(size), tuple(full))


def _times(size: Size, scale: float) -> Size:
    """Returns an axis's size times a scale factor, rounded down."""
    if isinstance(size, int):
        return int(size * scale)
    numerator, denominator = scale.as_integer_ratio()
    return size * numerator // denominator


def _sized(data: Value, sizes: Sequence[Size], axes: Sequence[int], policy: str) -> _Target:
    size = list(data.sizes)
    for axis, new in zip(axes, sizes, strict=True):
        size[axis] = new
    if policy == "stretch":
        return _Target(tuple(size), None)
    if policy not in ("not_larger", "not_smaller"):
        raise NodeRefused(
            f"keep_aspect_ratio_policy is '{policy}', accepted are stretch, not_larger and"
            " not_smaller"
        )
    shape, scales = data.shape, [1.0] * data.rank
    among = [
        operator.index(new) / shape[axis] if shape[axis] else 1.0
        for axis, new in zip(axes, sizes, strict=True)
    ]
    scale = min(among) if policy == "not_larger" else max(among)
    for axis in axes:
        size[axis], scales[axis] = int(scale * shape[axis] + 0.5), scale
    return _Target(tuple(size), tuple(scales))


def _with_roi(target: _Target, roi: Sequence[float], axes: Sequence[int]) -> _Target:
    rank = len(target.size)
    full = [0.0] * rank + [1.0] * rank
    for number, axis in enumerate(axes):
        full[axis], full[rank + axis] = roi[number], roi[len(axes) + number]
    return _Target(target.size, target.scales, tuple(full))


@onnx_op("Resize", since=11)
def resize(
    context: NodeContext,
    data: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    sizes: Value | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Value:
    listed = range(data.rank) if axes is None else axes
    along = [normalize_axis(axis, data.rank) for axis in listed]
    factors = _numbers(context, scales, "scales")
    wanted = () if sizes is None else context.sizes(sizes, "sizes")
    if not factors and not wanted:
        raise NodeRefused("neither scales nor sizes are given")
    target = (
        _scaled(data, factors, along)
        if factors
        else _sized(data, wanted, along, keep_aspect_ratio_policy)
    )
    if coordinate_transformation_mode == "tf_crop_and_resize":
        target = _with_roi(target, _numbers(context, roi, "roi"), along)
    return context.emit(
        image.ResizeOp,
        data,
        size=target.size,
        scales=target.factors,
        roi=None if target.roi is None else image.floats_attribute(target.roi),
        method=mode,
        coordinate_transformation_mode=coordinate_transformation_mode,
        rounding_method=nearest_mode,
        cubic_alpha=cubic_coeff_a,
        antialias=bool(antialias),
        exclude_outside=bool(exclude_outside),
        extrapolation_value=extrapolation_value,
    )


@onnx_op("Resize")
@onnx_op("Upsample", since=7)
def upsample(context: NodeContext, data: Value, scales: Value, *, mode: str = "nearest") -> Value:
    return _upsampled(context, data, _numbers(context, scales, "scales"), mode)


@onnx_op("Upsample")
def upsample_by_height_and_width(
    context: NodeContext,
    data: Value,
    *,
    height_scale: float,
    width_scale: float,
    mode: str = "nearest",
) -> Value:
    return _upsampled(context, data, (1.0, 1.0, height_scale, width_scale), mode)


def _upsampled(context: NodeContext, data: Value, scales: Sequence[float], mode: str) -> Value:
    target = _scaled(data, scales, range(data.rank))
    return context.emit(
        image.ResizeOp,
        data,
        size=target.size,
        scales=target.factors,
        method="linear" if mode in ("linear", "bilinear") else mode,
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    )
