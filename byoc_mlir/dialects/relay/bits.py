"""Ops on the bits of elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import DataOp, tensor_of, tensor_type, type_sizes
from byoc_mlir.dialects.relay.element_types import numpy_dtype


@irdl_op_definition
class ReinterpretOp(DataOp):
    """`data -> output`: the same bits, as elements of another type of equal size."""

    name = "relay.reinterpret"
    dtype = prop_def(TypeAttribute)

    def infer_types(self) -> Sequence[Attribute]:
        data = tensor_type(self.data)
        sizes = [numpy_dtype(type_).itemsize for type_ in (data.element_type, self.dtype)]
        if sizes[0] != sizes[1]:
            raise VerifyException(
                f"{self.name}: elements of {data} take {sizes[0]} bytes, {self.dtype} takes"
                f" {sizes[1]}"
            )
        return (tensor_of(self.dtype, type_sizes(data)),)
