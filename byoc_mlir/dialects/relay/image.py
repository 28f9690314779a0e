"""Ops on images and volumes: resizing, sampling at computed places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, TensorType, f64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    RelayOp,
    bool_prop,
    check_addressed,
    float_prop,
    ints,
    shape_of,
    size_list,
    sizes_prop,
    str_prop,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.resampling import COORDINATES, METHODS, ROUNDINGS, Axis, Taps, taps
from byoc_mlir.dialects.relay.shape import at_most


def floats_attribute(values: Sequence[float]) -> ArrayAttr[FloatAttr]:
    """An array of numbers as a property."""
    return ArrayAttr([FloatAttr(value, f64) for value in values])


def _floats(attribute: ArrayAttr[Attribute]) -> list[float]:
    return [cast(FloatAttr, item).value.data for item in attribute]


@irdl_op_definition
class ResizeOp(RelayOp):
    """`data [d...] -> output [size...]`, every dimension resized on its own.

    `scales` are the factors before sizes were rounded. `roi` holds all starts, then all ends, as
    parts of 1; only `tf_crop_and_resize` looks at it, and gives `extrapolation_value` outside of
    the data. https://onnx.ai/onnx/operators/onnx__Resize.html
    """

    name = "relay.image.resize"
    data = operand_def(TensorType)
    size = sizes_prop()
    scales = prop_def(ArrayAttr)
    roi = opt_prop_def(ArrayAttr)
    method = str_prop("linear")
    coordinate_transformation_mode = str_prop("half_pixel")
    rounding_method = str_prop("round_prefer_floor")
    cubic_alpha = float_prop(-0.75)
    antialias = bool_prop(False)
    exclude_outside = bool_prop(False)
    extrapolation_value = float_prop(0.0)
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        data, size = tensor_type(self.data), size_list(self.size)
        rank = len(type_sizes(data))
        if len(size) != rank or len(self.scales) != rank:
            raise VerifyException(
                f"{self.name}: size and scales must have {rank} entries, found {list(size)} and"
                f" {len(self.scales)}"
            )
        if self.roi is not None and len(self.roi) != 2 * rank:
            raise VerifyException(f"{self.name}: roi must have {2 * rank} entries")
        if not all(at_most(0, new) for new in size) or any(
            scale <= 0 for scale in _floats(self.scales)
        ):
            raise VerifyException(f"{self.name}: sizes and scales must be positive")
        for what, accepted in (
            (self.method, METHODS),
            (self.coordinate_transformation_mode, COORDINATES),
            (self.rounding_method, ROUNDINGS),
        ):
            if what.data not in accepted:
                raise VerifyException(
                    f"{self.name}: '{what.data}' is not known, accepted are {', '.join(accepted)}"
                )
        check_addressed(self, type_sizes(data), size)
        return (tensor_of(data.element_type, size),)

    def resized_axes(self) -> list[tuple[int, Taps]]:
        """The axes that change, and what each element along them is made of."""
        crops = self.coordinate_transformation_mode.data == "tf_crop_and_resize"
        roi = _floats(self.roi) if self.roi is not None and crops else None
        found: list[tuple[int, Taps]] = []
        shape = shape_of(self.data)
        for number, (old, new, scale) in enumerate(
            zip(shape, ints(self.size), _floats(self.scales), strict=True)
        ):
            part = (roi[number], roi[number + len(shape)]) if roi else (0.0, 1.0)
            axis = Axis(old, new, scale, part)
            if not axis.is_kept:
                found.append((number, self._taps(axis)))
        return found

    def _taps(self, axis: Axis) -> Taps:
        return taps(
            axis,
            self.method.data,
            self.coordinate_transformation_mode.data,
            self.rounding_method.data,
            alpha=self.cubic_alpha.value.data,
            antialias=bool(self.antialias.value.data),
            exclude_outside=bool(self.exclude_outside.value.data),
        )
