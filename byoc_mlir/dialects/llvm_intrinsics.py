"""Intrinsics of the `llvm` dialect that xDSL lacks, under their upstream names.

Documentation: https://mlir.llvm.org/docs/Dialects/LLVM/ and https://llvm.org/docs/LangRef.html
"""

from __future__ import annotations

from abc import ABC
from functools import cache
from typing import ClassVar, Self

from xdsl.dialects.builtin import AnyFloatConstr, BoolAttr, SignlessIntegerConstraint, VectorType
from xdsl.dialects.llvm import FastMathAttr
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, SameOperandsAndResultType

from byoc_mlir.dialects.operations import operations_in

_INTEGER_LIKE = SignlessIntegerConstraint | VectorType.constr(SignlessIntegerConstraint)
_FLOAT_LIKE = AnyFloatConstr | VectorType.constr(AnyFloatConstr)

_FORMAT = "`(` operands `)` attr-dict `:` functional-type(operands, results)"


@cache
def _format_of(kind: type[IRDLOperation]) -> FormatProgram:
    return FormatProgram.from_str(_FORMAT, kind.get_irdl_definition())


class Intrinsic(IRDLOperation, ABC):
    """Op with the syntax of a call.

    The syntax is compiled when an op is parsed or printed first: a compilation does neither, and
    compiling it for each op takes longer than all else in this file.
    """

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return _format_of(cls).parse(parser, cls)

    def print(self, printer: Printer) -> None:
        _format_of(type(self)).print(printer, self)


class ElementwiseIntrinsic(Intrinsic, ABC):
    """Function whose operands and result have the same type."""

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure(), SameOperandsAndResultType())


class FloatIntrinsic(ElementwiseIntrinsic, ABC):
    T: ClassVar = VarConstraint("T", _FLOAT_LIKE)

    res = result_def(T)
    fastmath_flags = prop_def(
        FastMathAttr, default_value=FastMathAttr(None), prop_name="fastmathFlags"
    )


class FloatUnaryIntrinsic(FloatIntrinsic, ABC):
    arg = operand_def(FloatIntrinsic.T)


class FloatBinaryIntrinsic(FloatIntrinsic, ABC):
    lhs = operand_def(FloatIntrinsic.T)
    rhs = operand_def(FloatIntrinsic.T)


class IntegerIntrinsic(ElementwiseIntrinsic, ABC):
    T: ClassVar = VarConstraint("T", _INTEGER_LIKE)

    res = result_def(T)


class IntegerUnaryIntrinsic(IntegerIntrinsic, ABC):
    arg = operand_def(IntegerIntrinsic.T)


class IntegerBinaryIntrinsic(IntegerIntrinsic, ABC):
    lhs = operand_def(IntegerIntrinsic.T)
    rhs = operand_def(IntegerIntrinsic.T)


class Reduction(Intrinsic, ABC):
    """Reduction of all elements of a vector."""

    traits = traits_def(Pure())


class IntegerReduction(Reduction, ABC):
    """Reduction of all elements of an integer vector."""

    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint)

    arg = operand_def(VectorType.constr(T))
    res = result_def(T)


class FloatReduction(Reduction, ABC):
    """Reduction of all elements of a float vector, in any order."""

    T: ClassVar = VarConstraint("T", AnyFloatConstr)

    arg = operand_def(VectorType.constr(T))
    res = result_def(T)
    fastmath_flags = prop_def(
        FastMathAttr, default_value=FastMathAttr(None), prop_name="fastmathFlags"
    )

    irdl_options = (ParsePropInAttrDict(),)


@irdl_op_definition
class FTruncOp(FloatUnaryIntrinsic):
    name = "llvm.intr.trunc"


@irdl_op_definition
class RoundOp(FloatUnaryIntrinsic):
    name = "llvm.intr.round"


@irdl_op_definition
class RoundEvenOp(FloatUnaryIntrinsic):
    name = "llvm.intr.roundeven"


@irdl_op_definition
class Log10Op(FloatUnaryIntrinsic):
    name = "llvm.intr.log10"


@irdl_op_definition
class TanOp(FloatUnaryIntrinsic):
    name = "llvm.intr.tan"


@irdl_op_definition
class AsinOp(FloatUnaryIntrinsic):
    name = "llvm.intr.asin"


@irdl_op_definition
class AcosOp(FloatUnaryIntrinsic):
    name = "llvm.intr.acos"


@irdl_op_definition
class AtanOp(FloatUnaryIntrinsic):
    name = "llvm.intr.atan"


@irdl_op_definition
class SinhOp(FloatUnaryIntrinsic):
    name = "llvm.intr.sinh"


@irdl_op_definition
class CoshOp(FloatUnaryIntrinsic):
    name = "llvm.intr.cosh"


@irdl_op_definition
class TanhOp(FloatUnaryIntrinsic):
    name = "llvm.intr.tanh"


@irdl_op_definition
class Atan2Op(FloatBinaryIntrinsic):
    name = "llvm.intr.atan2"


@irdl_op_definition
class MaximumOp(FloatBinaryIntrinsic):
    """Larger operand; NaN if either is."""

    name = "llvm.intr.maximum"


@irdl_op_definition
class MinimumOp(FloatBinaryIntrinsic):
    """Smaller operand; NaN if either is."""

    name = "llvm.intr.minimum"


@irdl_op_definition
class FMulAddOp(FloatIntrinsic):
    """Sum `a * b + c`, fused if that is as fast as a multiplication on the target."""

    name = "llvm.intr.fmuladd"

    a = operand_def(FloatIntrinsic.T)
    b = operand_def(FloatIntrinsic.T)
    c = operand_def(FloatIntrinsic.T)


@irdl_op_definition
class CtPopOp(IntegerUnaryIntrinsic):
    name = "llvm.intr.ctpop"


@irdl_op_definition
class SMaxOp(IntegerBinaryIntrinsic):
    name = "llvm.intr.smax"


@irdl_op_definition
class SMinOp(IntegerBinaryIntrinsic):
    name = "llvm.intr.smin"


@irdl_op_definition
class UMaxOp(IntegerBinaryIntrinsic):
    name = "llvm.intr.umax"


@irdl_op_definition
class UMinOp(IntegerBinaryIntrinsic):
    name = "llvm.intr.umin"


@irdl_op_definition
class AbsOp(IntegerUnaryIntrinsic):
    name = "llvm.intr.abs"

    is_int_min_poison = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))


@irdl_op_definition
class CountLeadingZerosOp(IntegerUnaryIntrinsic):
    name = "llvm.intr.ctlz"

    is_zero_poison = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))


@irdl_op_definition
class CountTrailingZerosOp(IntegerUnaryIntrinsic):
    name = "llvm.intr.cttz"

    is_zero_poison = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))


@irdl_op_definition
class ReduceAddOp(IntegerReduction):
    name = "llvm.intr.vector.reduce.add"


@irdl_op_definition
class ReduceMulOp(IntegerReduction):
    name = "llvm.intr.vector.reduce.mul"


@irdl_op_definition
class ReduceAndOp(IntegerReduction):
    name = "llvm.intr.vector.reduce.and"


@irdl_op_definition
class ReduceOrOp(IntegerReduction):
    name = "llvm.intr.vector.reduce.or"


@irdl_op_definition
class ReduceXorOp(IntegerReduction):
    name = "llvm.intr.vector.reduce.xor"


@irdl_op_definition
class ReduceSMaxOp(IntegerReduction):
    name = "llvm.intr.vector.reduce.smax"


@irdl_op_definition
class ReduceSMinOp(IntegerReduction):
    name = "llvm.intr.vector.reduce.smin"


@irdl_op_definition
class ReduceUMaxOp(IntegerReduction):
    name = "llvm.intr.vector.reduce.umax"


@irdl_op_definition
class ReduceUMinOp(IntegerReduction):
    name = "llvm.intr.vector.reduce.umin"


@irdl_op_definition
class ReduceFMaxOp(FloatReduction):
    name = "llvm.intr.vector.reduce.fmax"


@irdl_op_definition
class ReduceFMinOp(FloatReduction):
    name = "llvm.intr.vector.reduce.fmin"


@irdl_op_definition
class ReduceFMaximumOp(FloatReduction):
    name = "llvm.intr.vector.reduce.fmaximum"


@irdl_op_definition
class ReduceFMinimumOp(FloatReduction):
    name = "llvm.intr.vector.reduce.fminimum"


INTRINSICS = operations_in(globals())
