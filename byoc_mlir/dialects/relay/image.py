"""Ops on images and volumes: resizing."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, f64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    DataOp,
    bool_prop,
    check_addressed,
    float_prop,
    shape_of,
    size_list,
    sizes_prop,
    str_prop,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.resampling import (
    COORDINATES,
    METHODS,
    ROUNDINGS,
    ResizedAxis,
    Taps,
    taps,
)
from byoc_mlir.dialects.relay.shape import at_most, is_symbolic
from byoc_mlir.dims import Size
from byoc_mlir.errors import UndecidedSizeError


def floats_attribute(values: Sequence[float]) -> ArrayAttr[FloatAttr]:
    """Returns an array of floats as an attribute."""
    return ArrayAttr([FloatAttr(value, f64) for value in values])


def _floats(attribute: ArrayAttr[Attribute]) -> list[float]:
    return [cast(FloatAttr, item).value.data for item in attribute]


@irdl_op_definition
class ResizeOp(DataOp):
    """`data [d...] -> output [size...]`, with every dimension resized on its own.

    `scales` are the factors before sizes were rounded; by default, the quotients of new and old
    sizes. `roi` holds all starts, then all ends, as fractions of 1; only `tf_crop_and_resize` uses
    it, with `extrapolation_value` outside of the data.
    https://onnx.ai/onnx/operators/onnx__Resize.html
    """

    name = "relay.image.resize"
    size = sizes_prop()
    scales = opt_prop_def(ArrayAttr)
    roi = opt_prop_def(ArrayAttr)
    method = str_prop("linear", METHODS)
    coordinate_transformation_mode = str_prop("half_pixel", COORDINATES)
    rounding_method = str_prop("round_prefer_floor", ROUNDINGS)
    cubic_alpha = float_prop(-0.75)
    antialias = bool_prop(False)
    exclude_outside = bool_prop(False)
    extrapolation_value = float_prop(0.0)

    def infer_types(self) -> Sequence[Attribute]:
        data, size = tensor_type(self.data), size_list(self.size)
        rank = len(type_sizes(data))
        scales = [1.0] * rank if self.scales is None else _floats(self.scales)
        if len(size) != rank or len(scales) != rank:
            raise VerifyException(
                f"{self.name}: size and scales must have {rank} entries, found {list(size)} and"
                f" {len(scales)}"
            )
        if self.roi is not None and len(self.roi) != 2 * rank:
            raise VerifyException(f"{self.name}: roi must have {2 * rank} entries")
        if not all(at_most(0, new) for new in size) or any(scale <= 0 for scale in scales):
            raise VerifyException(f"{self.name}: sizes and scales must be positive")
        check_addressed(self, type_sizes(data), size)
        return (tensor_of(data.element_type, size),)

    def resized_axes(self) -> list[tuple[int, Taps]]:
        """Returns the axes that change, and the taps along them."""
        axes = range(len(shape_of(self.data)))
        return [(number, self.taps_along(number)) for number in axes if not self.is_kept(number)]

    def is_kept(self, number: int) -> bool:
        """True if the resize leaves axis `number` unchanged."""
        old, new, scale = self._axis(number)
        return old == new and scale in (None, 1.0) and self.part_of(number) == (0.0, 1.0)

    def part_of(self, number: int) -> tuple[float, float]:
        """Returns begin and end of the region of interest along axis `number`, as fractions of
        1.
        """
        if self.roi is None or self.coordinate_transformation_mode.data != "tf_crop_and_resize":
            return 0.0, 1.0
        roi = _floats(self.roi)
        return roi[number], roi[number + len(roi) // 2]

    def scale_of(self, number: int) -> float | None:
        """Returns the scale factor of axis `number`; `None` if it is the quotient of symbolic
        sizes.
        """
        return self._axis(number)[2]

    def taps_along(self, number: int) -> Taps:
        """Returns the taps along axis `number`, whose sizes are known.

        Raises:
            UndecidedSizeError: a size is symbolic.
        """
        old, new, scale = self._axis(number)
        if is_symbolic((old, new)) or scale is None:
            raise UndecidedSizeError(f"{self.name} resizes {old} elements to {new}")
        return taps(
            ResizedAxis(index(old), index(new), scale, self.part_of(number)),
            self.method.data,
            self.coordinate_transformation_mode.data,
            self.rounding_method.data,
            alpha=self.cubic_alpha.value.data,
            antialias=bool(self.antialias.value.data),
            exclude_outside=bool(self.exclude_outside.value.data),
        )

    def _axis(self, number: int) -> tuple[Size, Size, float | None]:
        """Returns the old and new size of an axis, and the scale factor."""
        old, new = type_sizes(tensor_type(self.data))[number], size_list(self.size)[number]
        if self.scales is not None:
            return old, new, _floats(self.scales)[number]
        if is_symbolic((old, new)):
            return old, new, None
        return old, new, index(new) / index(old) if old else 1.0
