"""Quantised values, as the passes over quantised models represent them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay.base import rank_of, sizes_of, tensor_type
from byoc_mlir.dialects.relay.element_types import integer_range, numpy_dtype
from byoc_mlir.dialects.relay.elementwise import MultiplyOp
from byoc_mlir.dialects.relay.qnn import DequantizeOp
from byoc_mlir.numpy_ops import integers
from byoc_mlir.tensors import Array
from byoc_mlir.transforms.op_sequence import OpSequence
from byoc_mlir.transforms.rewriting import constant_array

BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


@dataclass(frozen=True)
class Quantised:
    """Quantised tensor: integers, scale and zero point, the operands of a `qnn.dequantize`."""

    data: SSAValue
    scale: SSAValue
    zero_point: SSAValue
    axis: int = 1
    """Axis of the parameters, counted from the front, if they are vectors."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Returns the type of the integers."""
        return numpy_dtype(tensor_type(self.data).element_type)

    @property
    def rank(self) -> int:
        """Returns the number of dimensions."""
        return rank_of(self.data)

    @property
    def is_whole(self) -> bool:
        """True if scale and zero point are scalars for the whole tensor."""
        return not sizes_of(self.scale) and not sizes_of(self.zero_point)

    @property
    def is_bytes(self) -> bool:
        """True if the integers have 8 bits, and scale and zero point are scalars for the whole
        tensor.
        """
        return self.is_whole and self.dtype in BYTES


def quantised(value: SSAValue) -> Quantised | None:
    """Returns the operands of the `qnn.dequantize` that computes a value; `None` for other values
    and blocked scales.
    """
    op = value.owner
    if not isinstance(op, DequantizeOp) or op.block_size.value.data:
        return None
    has_axis = sizes_of(op.scale) or sizes_of(op.zero_point)
    return Quantised(op.data, op.scale, op.zero_point, op.positive_axis if has_axis else 1)


def same_value(one: SSAValue, two: SSAValue) -> bool:
    """True if both arguments are the same SSA value, or equal constants."""
    if one is two:
        return True
    first, second = constant_array(one), constant_array(two)
    return (
        first is not None
        and second is not None
        and one.type == two.type
        and np.array_equal(first, second)
    )


def is_zero(value: SSAValue) -> bool:
    """True if a value is a constant of zeros."""
    array = constant_array(value)
    return array is not None and not array.astype(np.float32).any()


def scale_product(one: SSAValue, two: SSAValue, new: OpSequence) -> SSAValue:
    """Multiplies two scales, at compile time if both are constant."""
    first, second = constant_array(one), constant_array(two)
    if first is None or second is None:
        return new.add(MultiplyOp, one, two)
    return new.constant("scale", np.multiply(first, second, dtype=np.float32))


def placed(numbers: Array, scale: Array, zero_point: Array) -> Array:
    """Quantises numbers with constant parameters; rounds and saturates like `qnn.quantize`."""
    low, high = integer_range(zero_point.dtype)
    with np.errstate(all="ignore"):
        shifted = np.rint(numbers.astype(np.float32) / scale) + zero_point.astype(np.float32)
    return integers.convert(np.clip(shifted, low, high), zero_point.dtype)
