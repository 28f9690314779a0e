"""Matmuls with weights of a few bits, quantised in blocks that each have a scale."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, Signedness, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    OneResultOp,
    bool_prop,
    int_prop,
    shape_of,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dims import ceildiv

WIDTHS = (2, 4, 8)
"""Accepted widths of a code, in bits."""

_BYTE = IntegerType(8, Signedness.UNSIGNED)


@irdl_op_definition
class BlockwiseDenseOp(OneResultOp):
    """`data [..., in] · weightᵀ -> output [..., units]`, with a block-quantised weight `[units,
    in]`.

    `codes [units, blocks, bytes]` are `ui8`; each byte has codes of `bits` bits, the low bits
    first. An element of the weight is `(code - zero_point) * scale`, with `scales [units, blocks]`
    and `zero_points [units, blocks]`, or `[1, 1]` if all blocks have the same. Codes after `in` in
    the last block are ignored.

    With `rounds`, each block of the data may be rounded to bytes, so that products are of integers.
    """

    name = "relay.nn.blockwise_dense"
    data = operand_def(TensorType)
    codes = operand_def(TensorType)
    scales = operand_def(TensorType)
    zero_points = operand_def(TensorType)
    bits = int_prop(4)
    rounds = bool_prop(False)

    @property
    def block_size(self) -> int:
        """Returns the number of elements of a block."""
        return shape_of(self.codes)[2] * 8 // self.bits.value.data

    def infer_types(self) -> Sequence[Attribute]:
        if self.bits.value.data not in WIDTHS:
            raise VerifyException(
                f"{self.name}: bits is {self.bits.value.data}, accepted are {list(WIDTHS)}"
            )
        data, codes = tensor_type(self.data), tensor_type(self.codes)
        shape, packed = type_sizes(data), shape_of(self.codes)
        if not shape or len(packed) != 3 or codes.element_type != _BYTE:
            raise VerifyException(
                f"{self.name}: expected data [..., in] and codes [units, blocks, bytes] of type"
                f" ui8, found {data} and {codes}"
            )
        units, blocks, _ = packed
        if self.block_size < 16 or self.block_size & (self.block_size - 1):
            raise VerifyException(
                f"{self.name}: a block has {self.block_size} elements, accepted are 16, 32, 64, …"
            )
        if blocks != ceildiv(shape[-1], self.block_size):
            raise VerifyException(
                f"{self.name}: {blocks} blocks of {self.block_size} elements do not fit the"
                f" {shape[-1]} of {data}"
            )
        scales = TensorType(data.element_type, [units, blocks])
        common = TensorType(data.element_type, [1, 1])
        if self.scales.type != scales:
            raise VerifyException(f"{self.name}: scales must be {scales}, found {self.scales.type}")
        if self.zero_points.type not in (scales, common):
            raise VerifyException(
                f"{self.name}: zero_points must be {scales} or {common}, found"
                f" {self.zero_points.type}"
            )
        return (tensor_of(data.element_type, [*shape[:-1], units]),)
