"""Samples of ops on images: resizing, sampling at computed positions, detection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, f64

from byoc_mlir.dialects.relay.base import PyValue
from byoc_mlir.testing.samples.relay_ops.sample import Range, Sample, Shape
from byoc_mlir.testing.samples.relay_ops.shapes import fixed

_IMAGE: Shape = (2, 3, 9, 8)
_REGIONS = 5
_CORNERS: Range = ((0.0, 0.0, 4.2, 4.2), (3.6, 3.6, 9.4, 9.4))
"""Range of the corners of regions: the first corner lies before the second."""


def _resizes() -> Iterator[Sample]:
    modes: list[dict[str, Any]] = [
        {},
        {"method": "nearest"},
        {"method": "nearest", "rounding_method": "ceil"},
        {"method": "cubic"},
        {"method": "cubic", "cubic_alpha": -0.5},
        {"method": "cubic", "exclude_outside": True},
        {"coordinate_transformation_mode": "align_corners"},
        {"coordinate_transformation_mode": "asymmetric"},
    ]
    scales = ArrayAttr([FloatAttr(scale, f64) for scale in (1.0, 1.0, 2.0, 1.5)])
    for mode in modes:
        yield Sample((1, 2, 5, 6), attributes={"size": [1, 2, 10, 9], "scales": scales, **mode})
    small = ArrayAttr([FloatAttr(scale, f64) for scale in (1.0, 1.0, 0.6, 0.5)])
    down: dict[str, PyValue] = {"size": [1, 2, 3, 3], "scales": small}
    yield Sample((1, 2, 5, 6), attributes=down)
    yield Sample((1, 2, 5, 6), attributes={**down, "antialias": True})


def _sampled_grids() -> Iterator[Sample]:
    plain = Sample(_IMAGE, fixed((2, 4, 5, 2)), ranges={1: (-1.3, 1.3)})
    yield plain
    for attributes in (
        {"method": "nearest"},
        {"method": "cubic"},
        {"padding_mode": "border"},
        {"padding_mode": "reflection"},
        {"method": "cubic", "padding_mode": "reflection", "align_corners": True},
        {"align_corners": True},
    ):
        yield replace(plain, attributes=attributes)
    yield replace(plain, constants=True)
    yield Sample((1, 2, 4, 5, 6), fixed((1, 2, 3, 4, 3)), ranges={1: (-1.3, 1.3)})


def _aligned_regions() -> Iterator[Sample]:
    size: dict[str, PyValue] = {"pooled_size": [2, 3]}
    plain = Sample(
        _IMAGE,
        fixed((_REGIONS, 4), (_REGIONS,)),
        size,
        dtypes={2: "int64"},
        ranges={1: _CORNERS, 2: (0, 1)},
    )
    yield plain
    more: Sequence[dict[str, PyValue]] = (
        {"pooled_size": [3, 2]},
        {"spatial_scale": 0.5},
        {"sample_ratio": 2},
        {"mode": "max"},
        {"aligned": False},
        {"aligned": False, "spatial_scale": 0.1},
    )
    for attributes in more:
        yield replace(plain, attributes={**size, **attributes})
    yield replace(plain, constants=True)


def _pooled_regions() -> Iterator[Sample]:
    (low, high), images = _CORNERS, (0.0, 1.0)
    assert isinstance(low, Sequence)
    assert isinstance(high, Sequence)
    for image in images:
        plain = Sample(
            _IMAGE,
            fixed((_REGIONS, 5)),
            {"pooled_size": [2, 3]},
            ranges={1: ((image, *low), (image, *high))},
        )
        yield plain
        yield replace(plain, attributes={"pooled_size": [3, 2], "spatial_scale": 0.5})
        yield replace(plain, constants=True)
        yield replace(plain, values=(-3.0, -0.2), note="negative values")


def _suppressions() -> Iterator[Sample]:
    most: dict[str, PyValue] = {"max_output_size": 3}
    thresholds: dict[int, Range] = {2: (0.3, 0.3), 3: (0.2, 0.2)}
    plain = Sample(
        (2, 12, 4),
        fixed((2, 3, 12), (), ()),
        most,
        ranges={0: _CORNERS, 1: (0.0, 1.0), **thresholds},
    )
    yield plain
    yield replace(plain, rest=fixed((2, 3, 12), ()), note="no least score")
    yield replace(plain, attributes={"max_output_size": 20}, note="more than there are")
    yield replace(
        plain,
        attributes={**most, "center_point_box": True},
        ranges={**plain.ranges, 0: ((2.0, 2.0, 1.0, 1.0), (6.0, 6.0, 4.0, 4.0))},
    )
    yield replace(plain, ranges={**plain.ranges, 2: (0.0, 0.0)}, note="no overlap")
    yield replace(plain, ranges={**plain.ranges, 3: (2.0, 2.0)}, note="nothing is kept")


def _deformed() -> Iterator[Sample]:
    """Yields deformable convolutions, which read each tap at a computed position."""

    def window(stride: int = 1, padding: int = 1, dilation: int = 1) -> dict[str, PyValue]:
        return {
            "strides": [stride] * 2,
            "padding": [padding] * 4,
            "dilation": [dilation] * 2,
        }

    data: Shape = (2, 4, 9, 8)
    weight, mask = (6, 4, 3, 3), (2, 9, 9, 8)
    offset = (2, 18, 9, 8)
    yield Sample(data, fixed(offset, weight), window())
    yield Sample(data, fixed(offset, weight), window(), constants=True)
    yield Sample(data, fixed(offset, weight, mask), window(), note="with a mask")
    yield Sample(data, fixed((2, 18, 5, 4), weight), window(stride=2))
    yield Sample(data, fixed(offset, weight), window(padding=2, dilation=2))
    grouped: dict[str, PyValue] = {"groups": 2}
    yield Sample(data, fixed(offset, (6, 2, 3, 3)), {**window(), **grouped})
    shared: dict[str, PyValue] = {"deformable_groups": 2}
    yield Sample(data, fixed((2, 36, 9, 8), weight), {**window(), **shared})


VISION_SAMPLES: Mapping[str, Sequence[Sample]] = {
    "image.resize": list(_resizes()),
    "image.grid_sample": list(_sampled_grids()),
    "vision.roi_align": list(_aligned_regions()),
    "vision.roi_pool": list(_pooled_regions()),
    "vision.non_max_suppression": list(_suppressions()),
    "nn.deformable_conv2d": list(_deformed()),
    "det": [
        Sample((3, 3)),
        Sample((2, 5, 4, 4), note="a stack"),
        Sample((4, 1, 1), note="inner size 1"),
        Sample((2, 2), values=(0.5, 0.5), note="singular"),
    ],
}
"""Samples by Relay name; the first sample of an op is its plainest."""
