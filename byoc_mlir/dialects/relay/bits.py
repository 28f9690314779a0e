"""Ops on the bits of elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import RelayOp, tensor_of, tensor_type, type_sizes
from byoc_mlir.dialects.relay.element_types import numpy_dtype


@irdl_op_definition
class ReinterpretOp(RelayOp):
    """`data -> output`: the same bits as elements of another type of that size."""

    name = "relay.reinterpret"
    data = operand_def(TensorType)
    dtype = prop_def(TypeAttribute)
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        data = tensor_type(self.data)
        sizes = [numpy_dtype(type_).itemsize for type_ in (data.element_type, self.dtype)]
        if sizes[0] != sizes[1]:
            raise VerifyException(
                f"{self.name}: elements of {data} take {sizes[0]} bytes, {self.dtype} takes"
                f" {sizes[1]}"
            )
        return (tensor_of(self.dtype, type_sizes(data)),)
