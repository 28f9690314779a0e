"""Bits of 16-bit floats as integers of the same order, whose maximum is one instruction."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, i16
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects.relay.base import tensor_of, tensor_type, type_sizes
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars

_MAGNITUDE = 2**15 - 1
"""Bits without the sign; as an integer it stands for NaN, which wins over all values."""


def _infinity(element_type: Attribute) -> int:
    """Returns the bits of infinity."""
    return 0x7F80 if isinstance(element_type, BFloat16Type) else 0x7C00


def ordered_least(element_type: Attribute) -> int:
    """Returns the integer of minus infinity."""
    return -_infinity(element_type) - 1


def to_ordered(b: LinalgBuilder, data: SSAValue) -> SSAValue:
    """Converts floats to integers of the same order; any NaN becomes the greatest one."""
    type_ = tensor_type(data)
    infinity = _infinity(type_.element_type)

    def body(s: Scalars, x: SSAValue) -> SSAValue:
        bits = s.emit(arith.BitcastOp(x, i16))
        magnitude = s.emit(arith.AndIOp(bits, s.constant(_MAGNITUDE, i16)))
        is_nan = s.emit(arith.CmpiOp(magnitude, s.constant(infinity, i16), "sgt"))
        return s.select(is_nan, s.constant(_MAGNITUDE, i16), _flipped(s, bits))

    return b.elementwise([data], tensor_of(i16, type_sizes(type_)), body)


def from_ordered(b: LinalgBuilder, data: SSAValue, element_type: Attribute) -> SSAValue:
    """Converts the integers back to floats."""
    return b.elementwise(
        [data],
        tensor_of(element_type, type_sizes(tensor_type(data))),
        lambda s, x: s.emit(arith.BitcastOp(_flipped(s, x), element_type)),
    )


def _flipped(s: Scalars, bits: SSAValue) -> SSAValue:
    """Reverses the order of negative numbers; twice is no change."""
    sign = s.emit(arith.ShRSIOp(bits, s.constant(15, i16)))
    mask = s.emit(arith.AndIOp(sign, s.constant(_MAGNITUDE, i16)))
    return s.emit(arith.XOrIOp(bits, mask))
