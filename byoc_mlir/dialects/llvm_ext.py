"""The `llvm` dialect: xDSL's ops and upstream ops that xDSL lacks, under their upstream names.

`LLVM` replaces xDSL's dialect object of the same name, so a tool registers it instead of
`xdsl.dialects.llvm.LLVM`. Every op means the LLVM instruction or intrinsic it is named after.

Upstream documentation: https://mlir.llvm.org/docs/Dialects/LLVM/
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    I1,
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    SignlessIntegerConstraint,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.llvm import GenericCastOp, LLVMPointerType
from xdsl.ir import (
    Attribute,
    Block,
    Dialect,
    Operation,
    ParametrizedAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    successor_def,
    traits_def,
    var_operand_def,
    var_successor_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.llvm_intrinsics import INTRINSICS
from byoc_mlir.dialects.operations import operations_in

# Types


@irdl_attr_definition
class X86AmxType(ParametrizedAttribute, TypeAttribute):
    """Matrix in a register of AMX."""

    name = "llvm.x86_amx"


# Conversions


@irdl_op_definition
class FPToSIOp(GenericCastOp):
    name = "llvm.fptosi"


@irdl_op_definition
class FPToUIOp(GenericCastOp):
    name = "llvm.fptoui"


@irdl_op_definition
class UIToFPOp(GenericCastOp):
    name = "llvm.uitofp"


# Values


@irdl_op_definition
class PoisonOp(IRDLOperation):
    """Poison value, on which no result may depend."""

    name = "llvm.mlir.poison"

    res = result_def()

    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($res)"

    def __init__(self, result_type: Attribute):
        super().__init__(result_types=[result_type])


@irdl_op_definition
class FreezeOp(IRDLOperation):
    """Operand, or an arbitrary but fixed value if the operand is undefined or poison."""

    name = "llvm.freeze"

    T: ClassVar = VarConstraint("T", AnyAttr())
    val = operand_def(T)
    res = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$val attr-dict `:` type($val)"

    def __init__(self, value: SSAValue | Operation):
        super().__init__(operands=[value], result_types=[SSAValue.get(value).type])


@irdl_op_definition
class ExtractElementOp(IRDLOperation):
    """Element of a vector."""

    name = "llvm.extractelement"

    T: ClassVar = VarConstraint("T", AnyAttr())
    vector = operand_def(VectorType.constr(T))
    position = operand_def(SignlessIntegerConstraint)
    res = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$vector `[` $position `:` type($position) `]` attr-dict `:` type($vector)"

    def __init__(self, vector: SSAValue | Operation, position: SSAValue | Operation):
        vector = SSAValue.get(vector, type=VectorType)
        super().__init__(operands=[vector, position], result_types=[vector.type.element_type])


@irdl_op_definition
class ICmpOp(IRDLOperation):
    """Comparison of two integers or pointers, or of vectors of integers."""

    name = "llvm.icmp"

    T: ClassVar = VarConstraint(
        "T",
        SignlessIntegerConstraint
        | VectorType.constr(SignlessIntegerConstraint)
        | BaseAttr(LLVMPointerType),
    )
    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(I1 | VectorType[I1])
    predicate = prop_def(IntegerAttr.constr(i64))

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, predicate: IntegerAttr):
        type_ = lhs.type
        super().__init__(
            operands=[lhs, rhs],
            result_types=[VectorType(i1, type_.shape) if isinstance(type_, VectorType) else i1],
            properties={"predicate": predicate},
        )

    @classmethod
    def parse(cls, parser: Parser) -> ICmpOp:
        read = llvm.ICmpOp.parse(parser)  # which takes no pointers, but is not verified
        op = cls(read.lhs, read.rhs, read.predicate)
        op.attributes.update(read.attributes)
        read.erase()
        return op

    def print(self, printer: Printer) -> None:
        cast(Any, llvm.ICmpOp).print(self, printer)


# Control flow


@irdl_op_definition
class SwitchOp(IRDLOperation):
    """Jump to the case whose value equals the operand, or to the default destination."""

    name = "llvm.switch"

    value = operand_def(IntegerType)
    default_operands = var_operand_def()
    case_operands = var_operand_def()
    case_values = opt_prop_def(DenseIntOrFPElementsAttr)
    case_operand_segments = prop_def(DenseArrayBase.constr(i32))
    default_destination = successor_def()
    case_destinations = var_successor_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(IsTerminator())

    def __init__(
        self,
        value: SSAValue | Operation,
        default: tuple[Block, Sequence[SSAValue]],
        cases: Sequence[tuple[int, Block, Sequence[SSAValue]]],
    ):
        value = SSAValue.get(value, type=IntegerType)
        case_values = DenseIntOrFPElementsAttr.from_list(
            VectorType(value.type, [len(cases)]), [case for case, _, _ in cases]
        )
        super().__init__(
            operands=[value, default[1], [arg for _, _, args in cases for arg in args]],
            properties={
                "case_values": case_values if cases else None,
                "case_operand_segments": DenseArrayBase.from_list(
                    i32, [len(args) for _, _, args in cases]
                ),
            },
            successors=[default[0], [block for _, block, _ in cases]],
        )

    def cases(self) -> Sequence[tuple[int, Block, Sequence[SSAValue]]]:
        """Returns the value, the destination and the block arguments of each case, in order."""
        values = () if self.case_values is None else self.case_values.iter_values()
        operands = tuple(self.case_operands)
        cases: list[tuple[int, Block, Sequence[SSAValue]]] = []
        start = 0
        for value, block, length in zip(
            values, self.case_destinations, self.case_operand_segments.get_values(), strict=True
        ):
            assert isinstance(value, int)
            cases.append((value, block, operands[start : start + int(length)]))
            start += int(length)
        return cases

    def verify_(self) -> None:
        segments = self.case_operand_segments.get_values()
        values = 0 if self.case_values is None else len(self.case_values)
        if not len(segments) == len(self.case_destinations) == values:
            raise VerifyException(
                f"expected as many case values ({values}) and operand segments ({len(segments)}) "
                f"as case destinations ({len(self.case_destinations)})"
            )
        if sum(segments) != len(self.case_operands):
            raise VerifyException(
                f"expected case operand segments to cover all {len(self.case_operands)} operands, "
                f"got {sum(segments)}"
            )


# Memory


class _BlockOp(IRDLOperation, ABC):
    """Write of `len` bytes."""

    len = operand_def(SignlessIntegerConstraint)
    is_volatile = prop_def(BoolAttr, prop_name="isVolatile")

    def __init__(
        self, dst: SSAValue | Operation, source: SSAValue | Operation, length: SSAValue | Operation
    ):
        super().__init__(
            operands=[dst, source, length], properties={"isVolatile": BoolAttr.from_bool(False)}
        )


class _BlockTransferOp(_BlockOp, ABC):
    """Copy of `len` bytes from `src` to `dst`."""

    dst = operand_def(LLVMPointerType)
    src = operand_def(LLVMPointerType)


@irdl_op_definition
class MemcpyOp(_BlockTransferOp):
    name = "llvm.intr.memcpy"


@irdl_op_definition
class MemmoveOp(_BlockTransferOp):
    name = "llvm.intr.memmove"


@irdl_op_definition
class MemsetOp(_BlockOp):
    """Fill of `len` bytes at `dst` with the byte `val`."""

    name = "llvm.intr.memset"

    dst = operand_def(LLVMPointerType)
    val = operand_def(IntegerType(8))


@irdl_op_definition
class MaskedLoadOp(IRDLOperation):
    """Elements of a vector in memory where `mask` is set, elsewhere elements of `pass_thru`."""

    name = "llvm.intr.masked.load"

    T: ClassVar = VarConstraint("T", VectorType.constr(AnyAttr()))
    data = operand_def(LLVMPointerType)
    mask = operand_def(VectorType[I1])
    pass_thru = operand_def(T)
    res = result_def(T)
    alignment = prop_def(IntegerAttr.constr(i32))

    def __init__(
        self,
        data: SSAValue | Operation,
        mask: SSAValue | Operation,
        pass_thru: SSAValue | Operation,
        alignment: int,
    ):
        super().__init__(
            operands=[data, mask, pass_thru],
            properties={"alignment": IntegerAttr(alignment, i32)},
            result_types=[SSAValue.get(pass_thru).type],
        )


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """Atomic update of `ptr` by `bin_op` with `val`; the result is the old value.

    `bin_op` and `ordering` are upstream's numbers.
    """

    name = "llvm.atomicrmw"

    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint)
    ptr = operand_def(LLVMPointerType)
    val = operand_def(T)
    res = result_def(T)
    bin_op = prop_def(IntegerAttr.constr(i64))
    ordering = prop_def(IntegerAttr.constr(i64))


def from_upstream(module: ModuleOp) -> None:
    """Converts properties from upstream's generic form to xDSL's."""
    for op in module.walk():
        flags = op.properties.get("overflowFlags")
        if isinstance(op, llvm.ArithmeticBinOpOverflow) and isinstance(flags, llvm.OverflowAttr):
            op.properties["overflowFlags"] = IntegerAttr(flags.to_int(), i32)
        if isinstance(op, llvm.GEPOp):
            op.properties.setdefault("noWrapFlags", _NO_WRAP_FLAGS)


def to_upstream(module: ModuleOp) -> None:
    """Converts properties back to upstream's generic form, which LLVM 19 reads and xDSL refuses."""
    for op in module.walk():
        if isinstance(op, llvm.ArithmeticBinOpOverflow) and op.overflowFlags is not None:
            flags = llvm.OverflowAttr.from_int(op.overflowFlags.value.data)
            op.properties["overflowFlags"] = flags
        if isinstance(op, llvm.TruncOp):
            op.properties.pop("overflowFlags", None)  # without them the result is wider, not other
        if op.properties.get("noWrapFlags") == _NO_WRAP_FLAGS:
            del op.properties["noWrapFlags"]


_NO_WRAP_FLAGS = IntegerAttr(0, i32)

LLVM = Dialect(
    "llvm",
    [
        *(op for op in llvm.LLVM.operations if op is not llvm.ICmpOp),
        *operations_in(globals()),
        *INTRINSICS,
    ],
    [*llvm.LLVM.attributes, X86AmxType],
)
