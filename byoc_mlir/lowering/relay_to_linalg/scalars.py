"""Scalar arithmetic for the bodies of `linalg.generic`; the element type determines the ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    UnrealizedConversionCastOp,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from byoc_mlir.dialects.arith_ext import RemFOp
from byoc_mlir.dialects.dynamic_buffers import SizeOp
from byoc_mlir.dialects.llvm_intrinsics import FMulAddOp
from byoc_mlir.dialects.relay.element_types import is_unsigned, numpy_dtype
from byoc_mlir.dims import Size
from byoc_mlir.kernels.ops import unary
from byoc_mlir.lowering.relay_to_linalg.computed_types import (
    Kind,
    accumulator_type,
    bounds,
    signless,
)

CONTRACT = arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])
REASSOCIATE = arith.FastMathFlagsAttr([FastMathFlag.REASSOC, FastMathFlag.ALLOW_CONTRACT])
_NO_SIGNED_ZEROS = arith.FastMathFlagsAttr([FastMathFlag.NO_SIGNED_ZEROS])
_EXTREMA = (arith.MaximumfOp, arith.MinimumfOp)
"""Ops that ignore the order of -0 and 0, which numpy does not define; it would take branches."""


_BINARY: dict[str, dict[Kind, type[Operation]]] = {
    "add": {Kind.FLOAT: arith.AddfOp, Kind.SIGNED: arith.AddiOp, Kind.UNSIGNED: arith.AddiOp},
    "sub": {Kind.FLOAT: arith.SubfOp, Kind.SIGNED: arith.SubiOp, Kind.UNSIGNED: arith.SubiOp},
    "mul": {Kind.FLOAT: arith.MulfOp, Kind.SIGNED: arith.MuliOp, Kind.UNSIGNED: arith.MuliOp},
    "div": {Kind.FLOAT: arith.DivfOp, Kind.SIGNED: arith.DivSIOp, Kind.UNSIGNED: arith.DivUIOp},
    "max": {
        Kind.FLOAT: arith.MaximumfOp,
        Kind.SIGNED: arith.MaxSIOp,
        Kind.UNSIGNED: arith.MaxUIOp,
    },
    "min": {
        Kind.FLOAT: arith.MinimumfOp,
        Kind.SIGNED: arith.MinSIOp,
        Kind.UNSIGNED: arith.MinUIOp,
    },
    "shr": {Kind.SIGNED: arith.ShRSIOp, Kind.UNSIGNED: arith.ShRUIOp},
    "rem": {Kind.FLOAT: RemFOp, Kind.SIGNED: arith.RemSIOp, Kind.UNSIGNED: arith.RemUIOp},
}
_PREDICATES: dict[str, dict[Kind, str]] = {
    "eq": {Kind.FLOAT: "oeq", Kind.SIGNED: "eq", Kind.UNSIGNED: "eq"},
    "ne": {Kind.FLOAT: "une", Kind.SIGNED: "ne", Kind.UNSIGNED: "ne"},
    "lt": {Kind.FLOAT: "olt", Kind.SIGNED: "slt", Kind.UNSIGNED: "ult"},
    "le": {Kind.FLOAT: "ole", Kind.SIGNED: "sle", Kind.UNSIGNED: "ule"},
    "gt": {Kind.FLOAT: "ogt", Kind.SIGNED: "sgt", Kind.UNSIGNED: "ugt"},
    "ge": {Kind.FLOAT: "oge", Kind.SIGNED: "sge", Kind.UNSIGNED: "uge"},
}
_REASSOCIABLE = (arith.AddfOp, arith.SubfOp, arith.MulfOp)


def _may_trap(kind: Kind, divisor: SSAValue) -> bool:
    """True if the divisor may be 0 or -1, for which an integer division may trap."""
    constant = divisor.owner
    if not isinstance(constant, arith.ConstantOp) or not isinstance(constant.value, IntegerAttr):
        return True
    number = constant.value.value.data
    return number == 0 or (kind is Kind.SIGNED and number == -1)


def multiply_add(
    emit: Callable[[Operation], SSAValue], lhs: SSAValue, rhs: SSAValue, total: SSAValue
) -> SSAValue:
    """Emits `lhs * rhs + total` for floats or vectors, as a fused multiply-add if there is one."""
    return emit(FMulAddOp.create(operands=[lhs, rhs, total], result_types=[total.type]))


def constant_op(value: IntegerAttr | FloatAttr) -> arith.ConstantOp:
    """Creates a scalar constant with `create`, in a quarter of the constructor's time."""
    return arith.ConstantOp.create(result_types=[value.type], properties={"value": value})


class Scalars:
    """Builder of scalar ops at the end of `block`; `kind` is the arithmetic of the operands.

    Integers are signless here: unsigned block arguments pass through `unwrap`, results through
    `wrap`.
    """

    def __init__(self, block: Block, kind: Kind, *, reassociate: bool = False):
        self.block = block
        self.kind = kind
        self._flags = REASSOCIATE if reassociate else CONTRACT

    def emit(self, op: Operation) -> SSAValue:
        """Appends an op and returns its result."""
        self.block.add_op(op)
        return op.results[0]

    def unwrap(self, value: SSAValue) -> SSAValue:
        """Converts an element to the signless type for computations."""
        return self._as_type(value, signless(value.type))

    def wrap(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """Converts a computed value to an element of type `element_type`."""
        return self._as_type(value, element_type)

    def _as_type(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """Converts a value to another type of equal width; `arith` has no unsigned types."""
        if value.type == type_:
            return value
        return self.emit(unary(UnrealizedConversionCastOp, value, type_))

    def constant(self, value: float, type_: Attribute) -> SSAValue:
        """Emits a constant of the (signless) type; integers must be whole numbers in range.

        For a float type, a number out of range becomes infinite.
        """
        if isinstance(type_, IndexType):
            return self.emit(constant_op(IntegerAttr(int(value), type_)))
        if isinstance(type_, IntegerType):
            return self.emit(constant_op(IntegerAttr(int(value), type_, truncate_bits=True)))
        with np.errstate(over="ignore"):
            held = float(np.asarray(value).astype(numpy_dtype(type_)))
        return self.emit(constant_op(FloatAttr(held, cast(AnyFloat, type_))))

    def like(self, value: float, other: SSAValue) -> SSAValue:
        """Emits a constant of the type of `other`."""
        return self.constant(value, other.type)

    def size(self, value: Size, type_: Attribute) -> SSAValue:
        """Emits a size as a number of the (signless) type."""
        if isinstance(value, int):
            return self.constant(value, type_)
        position = self.emit(SizeOp(value))
        return self.cast(self.emit(arith.IndexCastOp(position, i64)), i64, type_)

    def index(self, dimension: int) -> SSAValue:
        """Emits the position along a dimension of the loop nest, as i64."""
        position = self.emit(linalg.IndexOp(dimension))
        return self.emit(arith.IndexCastOp(position, i64))

    def binary(self, name: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits `add`, `sub`, `mul`, `div`, `max`, `min`, `shr` or `rem`; defined for all operands.

        An integer divided by zero is zero, and so is the remainder.
        """
        if name in ("div", "rem") and self.kind is not Kind.FLOAT and _may_trap(self.kind, rhs):
            return self._guarded(name, lhs, rhs)
        return self._plain(name, lhs, rhs)

    def _guarded(self, name: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits an integer division that does not trap for the divisors 0 and -1.

        For these divisors the quotient is the product modulo the width, and the remainder is 0.
        """
        traps = self.compare("eq", rhs, self.like(0, rhs))
        if self.kind is Kind.SIGNED:
            is_minus_one = self.compare("eq", rhs, self.like(-1, rhs))
            traps = self.emit(arith.OrIOp(traps, is_minus_one))
        result = self._plain(name, lhs, self.select(traps, self.like(1, rhs), rhs))
        return result if name == "rem" else self.select(traps, self.mul(lhs, rhs), result)

    def _plain(self, name: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        target = _BINARY[name][self.kind]
        op = target.create(operands=[lhs, rhs], result_types=[lhs.type])
        if target in _REASSOCIABLE:
            op.properties["fastmath"] = self._flags
        elif target in _EXTREMA:
            op.properties["fastmath"] = _NO_SIGNED_ZEROS
        elif self.kind is Kind.FLOAT:
            op.properties["fastmath"] = arith.FastMathFlagsAttr("none")
        elif target in (arith.AddiOp, arith.SubiOp, arith.MuliOp):
            op.properties["overflowFlags"] = arith.IntegerOverflowAttr("none")
        return self.emit(op)

    def add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits `lhs + rhs`."""
        return self.binary("add", lhs, rhs)

    def sub(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits `lhs - rhs`."""
        return self.binary("sub", lhs, rhs)

    def mul(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits `lhs * rhs`."""
        return self.binary("mul", lhs, rhs)

    def div(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits `lhs / rhs`; integers are rounded toward zero, and a division by zero results
        in 0.
        """
        return self.binary("div", lhs, rhs)

    def max(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits the maximum; NaN if an operand is NaN."""
        return self.binary("max", lhs, rhs)

    def min(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits the minimum; NaN if an operand is NaN."""
        return self.binary("min", lhs, rhs)

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits `eq`, `ne`, `lt`, `le`, `gt` or `ge`, as i1; NaN is unequal to everything."""
        name = _PREDICATES[predicate][self.kind]
        if self.kind is Kind.FLOAT:
            return self.emit(arith.CmpfOp(lhs, rhs, name))
        return self.emit(arith.CmpiOp(lhs, rhs, name))

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """Emits `yes` if `condition` holds, else `no`."""
        return self.emit(arith.SelectOp(condition, yes, no))

    def unary(self, op: type[Operation], value: SSAValue) -> SSAValue:
        """Emits an op of the `math` dialect, or `arith.negf`."""
        made = op.create(operands=[value], result_types=[value.type])
        if self.kind is Kind.FLOAT:
            made.properties["fastmath"] = arith.FastMathFlagsAttr("none")
        return self.emit(made)

    def cast(self, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
        """Emits the conversion from `source` to `target`, as numpy's `astype`; both values are
        signless.
        """
        return _cast(self, value, source, target)


def _cast(s: Scalars, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    if source == target:
        return value
    if target == i1:
        return Scalars(s.block, Kind.of(source)).compare("ne", value, s.like(0, value))
    from_float, to_float = Kind.of(source) is Kind.FLOAT, Kind.of(target) is Kind.FLOAT
    if from_float and to_float:
        return _between_floats(s, value, target)
    if from_float:
        return _float_to_integer(s, value, cast(IntegerType, target))
    unsigned = Kind.of(source) is Kind.UNSIGNED
    if to_float:
        convert = arith.UIToFPOp if unsigned else arith.SIToFPOp
        return s.emit(convert(value, cast(AnyFloat, target)))
    return resize(s, value, cast(IntegerType, signless(target)), unsigned=unsigned)


_FLOAT_WIDTHS: dict[type[Attribute], int] = {
    BFloat16Type: 16,
    Float16Type: 16,
    type(f32): 32,
    Float64Type: 64,
}


def _between_floats(s: Scalars, value: SSAValue, target: Attribute) -> SSAValue:
    width, new_width = _FLOAT_WIDTHS[type(value.type)], _FLOAT_WIDTHS[type(target)]
    if width == new_width:
        value = s.emit(arith.ExtFOp(value, f32))
        width = 32
    convert = arith.ExtFOp if width < new_width else arith.TruncFOp
    return s.emit(convert(value, cast(AnyFloat, target)))


def _float_to_integer(s: Scalars, value: SSAValue, target: IntegerType) -> SSAValue:
    """Emits the low bits of a float, converted to a wide signed integer.

    A value that does not fit becomes the wide type's minimum. C compilers do the same on x86; here
    every processor does.
    """
    s = Scalars(s.block, Kind.FLOAT)
    if accumulator_type(value.type) != value.type:
        value = _between_floats(s, value, f32)
    width = target.width.data
    wide = i32 if width < 32 or target == i32 else i64
    low = _toward_zero(s, value, wide)
    if not (is_unsigned(target) and width == 64):
        return resize(s, low, IntegerType(width), unsigned=False)
    half = s.like(2.0**63, value)
    high = _toward_zero(s, s.sub(value, half), wide)
    flipped = s.emit(arith.XOrIOp(high, s.like(-(2**63), high)))
    return s.select(s.compare("ge", value, half), flipped, low)


def _toward_zero(s: Scalars, value: SSAValue, target: IntegerType) -> SSAValue:
    """Emits the conversion to a signed integer; NaN and values out of range become the minimum."""
    least, greatest = bounds(target)
    not_below = s.compare("ge", value, s.like(least, value))
    fits = s.emit(arith.AndIOp(not_below, s.compare("lt", value, s.like(greatest + 1, value))))
    integer = s.emit(arith.FPToSIOp(value, target))
    return s.select(fits, integer, s.like(least, integer))


def resize(s: Scalars, value: SSAValue, target: IntegerType, *, unsigned: bool) -> SSAValue:
    """Emits the extension or truncation of a signless integer to another width."""
    width = cast(IntegerType, value.type).width.data
    if width == target.width.data:
        return value
    if width > target.width.data:
        return s.emit(arith.TruncIOp(value, target))
    return s.emit((arith.ExtUIOp if unsigned else arith.ExtSIOp)(value, target))


def remainder(s: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Emits the remainder with the sign of the dividend; for floats, C's `fmod`."""
    return s.binary("rem", lhs, rhs)


def floor_remainder(s: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Emits the remainder with the sign of the divisor."""
    rest = remainder(s, lhs, rhs)
    if s.kind is Kind.UNSIGNED:
        return rest
    zero = s.like(0, rest)
    not_zero = s.compare("ne", rest, zero)
    signs = (s.compare("lt", rest, zero), s.compare("lt", rhs, zero))
    differ = s.emit(arith.XOrIOp(*signs))
    wrong = s.emit(arith.AndIOp(not_zero, differ))
    return s.select(wrong, s.add(rest, rhs), rest)


def power(s: Scalars, base: SSAValue, exponent: SSAValue) -> SSAValue:
    """Emits `base` to the power of `exponent`.

    Integers use repeated squaring, modulo the width. With a negative exponent, the fraction is
    truncated, so that all bases except 1 and -1 result in 0.
    """
    if s.kind is Kind.FLOAT:
        return s.emit(math.PowFOp(base, exponent))
    width = cast(IntegerType, base.type).width.data
    one, zero = s.like(1, base), s.like(0, base)
    result, square = one, base
    for bit in range(width):
        masked = s.emit(arith.AndIOp(exponent, s.like(1 << bit, base)))
        is_set = s.compare("ne", masked, zero)
        result = s.select(is_set, s.mul(result, square), result)
        square = s.mul(square, square)
    if s.kind is Kind.UNSIGNED:
        return result
    is_unit = s.compare("eq", s.emit(math.AbsIOp(base)), one)
    fraction = s.select(is_unit, result, zero)
    return s.select(s.compare("lt", exponent, zero), fraction, result)


def constant_power(s: Scalars, base: SSAValue, exponent: int) -> SSAValue:
    """Emits `base` to the power of a constant, non-negative exponent by repeated squaring."""
    if exponent == 0:
        return s.like(1, base)
    half = constant_power(s, base, exponent // 2) if exponent > 1 else None
    square = base if half is None else s.mul(half, half)
    return s.mul(square, base) if exponent > 1 and exponent % 2 else square
