"""Ops that return sizes as values, for models that compute with them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    OneResultOp,
    ints,
    ints_prop,
    size_list,
    sizes_prop,
    tensor_of,
)
from byoc_mlir.dims import ceildiv, largest

CONSTANT_NAME = "onnx_name"
"""Attribute with names for the results of an op that becomes a constant once sizes are known."""


@irdl_op_definition
class SizesOp(OneResultOp):
    """`-> output` of shape `newshape`, whose elements are the sizes `values` in row-major order."""

    name = "relay.sizes"
    values = sizes_prop()
    newshape = ints_prop()
    dtype = prop_def(TypeAttribute)

    def infer_types(self) -> Sequence[Attribute]:
        shape, count = ints(self.newshape), len(size_list(self.values))
        type_ = tensor_of(self.dtype, shape)
        if type_.element_count() != count:
            raise VerifyException(f"{self.name}: {type_} does not hold {count} sizes")
        return (type_,)


@irdl_op_definition
class ArangeOp(OneResultOp):
    """`-> output [n]`: from `span[0]` in steps of `span[2]` up to `span[1]`, exclusive."""

    name = "relay.arange"
    span = sizes_prop()
    dtype = prop_def(TypeAttribute)

    def infer_types(self) -> Sequence[Attribute]:
        if len(size_list(self.span)) != 3:
            raise VerifyException(f"{self.name}: span must be start, stop and step")
        start, stop, step = size_list(self.span)
        if not isinstance(step, int) or step == 0:
            raise VerifyException(f"{self.name}: the step is {step}, accepted are numbers but 0")
        return (tensor_of(self.dtype, [largest(0, ceildiv(stop - start, step))]),)
