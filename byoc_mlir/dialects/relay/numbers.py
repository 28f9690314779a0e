"""Substitution of numbers for symbolic sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter

from byoc_mlir.dialects.relay.properties import to_attribute
from byoc_mlir.dialects.relay.shape import ShapeAttr, SizeAttr, Tensor, tensor_of, type_sizes
from byoc_mlir.dims import Size, substituted


def with_numbers(function: FuncOp, sizes: Mapping[str, int]) -> FuncOp:
    """Returns a copy of a function, outside of any module, whose body has numbers for symbolic
    sizes.
    """
    copy = function.clone()
    for op in tuple(copy.body.block.ops):
        for name, value in op.properties.items():
            op.properties[name] = property_with(value, sizes)
        for result in tuple(op.results):
            type_ = type_with(result.type, sizes)
            if type_ != result.type:
                Rewriter.replace_value_with_new_type(result, type_)
    return copy


def type_with(type_: Attribute, sizes: Mapping[str, int]) -> Attribute:
    """Returns a type with numbers for symbolic sizes."""
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast(Tensor, type_)
    if not isinstance(tensor.encoding, ShapeAttr):
        return tensor
    return tensor_of(tensor.element_type, _numbers(type_sizes(tensor), sizes))


def property_with(value: Attribute, sizes: Mapping[str, int]) -> Attribute:
    """Returns a property with numbers for symbolic sizes."""
    if isinstance(value, SizeAttr):
        return cast(Attribute, to_attribute(substituted(value.data, sizes)))
    if isinstance(value, ShapeAttr):
        return cast(Attribute, to_attribute(_numbers(value.data, sizes)))
    return value


def _numbers(sizes: Sequence[Size], values: Mapping[str, int]) -> list[Size]:
    return [substituted(size, values) for size in sizes]
