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

from byoc_mlir.dialects.operations import define_op, operations_in

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


FTruncOp = define_op(FloatUnaryIntrinsic, "llvm.intr.trunc")
RoundOp = define_op(FloatUnaryIntrinsic, "llvm.intr.round")
RoundEvenOp = define_op(FloatUnaryIntrinsic, "llvm.intr.roundeven")
Log10Op = define_op(FloatUnaryIntrinsic, "llvm.intr.log10")
TanOp = define_op(FloatUnaryIntrinsic, "llvm.intr.tan")
AsinOp = define_op(FloatUnaryIntrinsic, "llvm.intr.asin")
AcosOp = define_op(FloatUnaryIntrinsic, "llvm.intr.acos")
AtanOp = define_op(FloatUnaryIntrinsic, "llvm.intr.atan")
SinhOp = define_op(FloatUnaryIntrinsic, "llvm.intr.sinh")
CoshOp = define_op(FloatUnaryIntrinsic, "llvm.intr.cosh")
TanhOp = define_op(FloatUnaryIntrinsic, "llvm.intr.tanh")
Atan2Op = define_op(FloatBinaryIntrinsic, "llvm.intr.atan2")
MaximumOp = define_op(FloatBinaryIntrinsic, "llvm.intr.maximum", "Larger operand, or NaN.")
MinimumOp = define_op(FloatBinaryIntrinsic, "llvm.intr.minimum", "Smaller operand, or NaN.")


@irdl_op_definition
class FMulAddOp(FloatIntrinsic):
    """Sum `a * b + c`, fused if that is as fast as a multiplication on the target."""

    name = "llvm.intr.fmuladd"

    a = operand_def(FloatIntrinsic.T)
    b = operand_def(FloatIntrinsic.T)
    c = operand_def(FloatIntrinsic.T)


CtPopOp = define_op(IntegerUnaryIntrinsic, "llvm.intr.ctpop")
SMaxOp = define_op(IntegerBinaryIntrinsic, "llvm.intr.smax")
SMinOp = define_op(IntegerBinaryIntrinsic, "llvm.intr.smin")
UMaxOp = define_op(IntegerBinaryIntrinsic, "llvm.intr.umax")
UMinOp = define_op(IntegerBinaryIntrinsic, "llvm.intr.umin")


@irdl_op_definition
class AbsOp(IntegerUnaryIntrinsic):
    name = "llvm.intr.abs"

    is_int_min_poison = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))


class CountZerosIntrinsic(IntegerUnaryIntrinsic, ABC):
    is_zero_poison = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))


CountLeadingZerosOp = define_op(CountZerosIntrinsic, "llvm.intr.ctlz")
CountTrailingZerosOp = define_op(CountZerosIntrinsic, "llvm.intr.cttz")
ReduceAddOp = define_op(IntegerReduction, "llvm.intr.vector.reduce.add")
ReduceMulOp = define_op(IntegerReduction, "llvm.intr.vector.reduce.mul")
ReduceAndOp = define_op(IntegerReduction, "llvm.intr.vector.reduce.and")
ReduceOrOp = define_op(IntegerReduction, "llvm.intr.vector.reduce.or")
ReduceXorOp = define_op(IntegerReduction, "llvm.intr.vector.reduce.xor")
ReduceSMaxOp = define_op(IntegerReduction, "llvm.intr.vector.reduce.smax")
ReduceSMinOp = define_op(IntegerReduction, "llvm.intr.vector.reduce.smin")
ReduceUMaxOp = define_op(IntegerReduction, "llvm.intr.vector.reduce.umax")
ReduceUMinOp = define_op(IntegerReduction, "llvm.intr.vector.reduce.umin")
ReduceFMaxOp = define_op(FloatReduction, "llvm.intr.vector.reduce.fmax")
ReduceFMinOp = define_op(FloatReduction, "llvm.intr.vector.reduce.fmin")
ReduceFMaximumOp = define_op(FloatReduction, "llvm.intr.vector.reduce.fmaximum")
ReduceFMinimumOp = define_op(FloatReduction, "llvm.intr.vector.reduce.fminimum")
INTRINSICS = operations_in(globals())
