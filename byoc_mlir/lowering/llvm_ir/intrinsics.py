"""Calls of intrinsics, whose names include the types that they are overloaded on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.llvm import FastMathAttr
from xdsl.ir import Attribute, Operation

from byoc_mlir.dialects import llvm_ext
from byoc_mlir.dialects.llvm_intrinsics import INTRINSICS, ElementwiseIntrinsic, Reduction
from byoc_mlir.errors import CompilationError
from byoc_mlir.lowering.llvm_ir.constants import intrinsic_suffix, type_text
from byoc_mlir.lowering.llvm_ir.instructions import Writer, fastmath_text
from byoc_mlir.lowering.llvm_ir.names import FunctionNames

_ON_RESULT: Sequence[type[Operation]] = (
    llvm.FAbsOp,
    llvm.FCeilOp,
    llvm.FSqrtOp,
    llvm.FFloorOp,
    llvm.FExpOp,
    llvm.FExp2Op,
    llvm.FLogOp,
    llvm.FLog2Op,
    llvm.FSinOp,
    llvm.FCosOp,
    llvm.FPowOp,
    llvm.FCopySignOp,
    llvm.FMAOp,
    llvm.StackSaveOp,
    llvm.VectorFMaxOp,
    llvm.VectorFMinOp,
    *(kind for kind in INTRINSICS if issubclass(kind, ElementwiseIntrinsic)),
)
_ON_LAST_OPERAND: Sequence[type[Operation]] = (
    llvm.VectorReduceFAddOp,
    llvm.VectorReduceFMulOp,
    llvm.StackRestoreOp,
    *(kind for kind in INTRINSICS if issubclass(kind, Reduction)),
)
_ON_ALL_OPERANDS: Sequence[type[Operation]] = (llvm_ext.MemcpyOp, llvm_ext.MemmoveOp)
_IMMEDIATES = ("isVolatile", "is_int_min_poison", "is_zero_poison")


def _overloaded(types: Callable[[Operation], Sequence[Attribute]]) -> Writer:
    """Returns the writer of an intrinsic that is overloaded on the given types."""

    def write(op: Operation, names: FunctionNames) -> str:
        name = "llvm." + op.name.removeprefix("llvm.intr.")
        return call_text(op, ".".join([name, *map(intrinsic_suffix, types(op))]), names)

    return write


def call_text(op: Operation, name: str, names: FunctionNames) -> str:
    """Returns the call of intrinsic `name` with operands and immediates."""
    flags = op.properties.get("fastmathFlags")
    prefix = fastmath_text(flags) if isinstance(flags, FastMathAttr) else ""
    immediates = [_immediate(op.properties[key]) for key in _IMMEDIATES if key in op.properties]
    args = ", ".join([*map(names.typed, op.operands), *immediates])
    type_ = type_text(op.results[0].type) if op.results else "void"
    return f"call {prefix}{type_} @{name}({args})"


def _immediate(value: Attribute) -> str:
    assert isinstance(value, IntegerAttr)
    return f"i1 {'true' if value.value.data else 'false'}"


def _masked_load(op: llvm_ext.MaskedLoadOp, names: FunctionNames) -> str:
    suffix = f"{intrinsic_suffix(op.res.type)}.{intrinsic_suffix(op.data.type)}"
    address = f"{names.typed(op.data)}{_align_argument(op.alignment)}"
    others = names.typed_list([op.mask, op.pass_thru])
    return f"call {type_text(op.res.type)} @llvm.masked.load.{suffix}({address}, {others})"


def _masked_store(op: llvm.MaskedStoreOp, names: FunctionNames) -> str:
    suffix = f"{intrinsic_suffix(op.value.type)}.{intrinsic_suffix(op.data.type)}"
    args = names.typed_list([op.value, op.data])
    mask = names.typed(op.mask)
    return f"call void @llvm.masked.store.{suffix}({args}{_align_argument(op.alignment)}, {mask})"


def _align_argument(alignment: IntegerAttr) -> str:
    return f", i32 {alignment.value.data}"


def _call_intrinsic(op: llvm.CallIntrinsicOp, names: FunctionNames) -> str:
    if op.op_bundle_operands:
        raise CompilationError("llvm-ir: llvm.call_intrinsic with operand bundles is not supported")
    return call_text(op, op.intrin.data, names)


WRITERS: Mapping[type[Operation], Writer] = {
    **dict.fromkeys(_ON_RESULT, _overloaded(lambda op: [op.results[0].type])),
    **dict.fromkeys(_ON_LAST_OPERAND, _overloaded(lambda op: [op.operands[-1].type])),
    **dict.fromkeys(
        _ON_ALL_OPERANDS, _overloaded(lambda op: [operand.type for operand in op.operands])
    ),
    llvm_ext.MemsetOp: _overloaded(lambda op: [op.operands[0].type, op.operands[-1].type]),
    llvm_ext.MaskedLoadOp: _masked_load,
    llvm.MaskedStoreOp: _masked_store,
    llvm.CallIntrinsicOp: _call_intrinsic,
}
