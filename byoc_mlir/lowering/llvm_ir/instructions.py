"""Instructions of LLVM assembly for ops: a table for each family, and a function for each
exception.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.dialects.llvm import FastMathAttr, OverflowAttr
from xdsl.ir import Operation

from byoc_mlir.dialects import llvm_ext
from byoc_mlir.errors import CompilationError
from byoc_mlir.lowering.llvm_ir.constants import quoted, type_text
from byoc_mlir.lowering.llvm_ir.names import FunctionNames, symbol

Writer = Callable[[Any, FunctionNames], str]
"""Function that returns the text of an op without its result: `add i32 %a, %b`."""

NONTEMPORAL = "!nontemporal !0"
"""Reference to metadata node 0, which is `!{i32 1}` in every module."""

_INTEGER_BINARY: Mapping[type[Operation], str] = {
    llvm.AddOp: "add",
    llvm.SubOp: "sub",
    llvm.MulOp: "mul",
    llvm.ShlOp: "shl",
    llvm.UDivOp: "udiv",
    llvm.SDivOp: "sdiv",
    llvm.LShrOp: "lshr",
    llvm.AShrOp: "ashr",
    llvm.URemOp: "urem",
    llvm.SRemOp: "srem",
    llvm.AndOp: "and",
    llvm.OrOp: "or",
    llvm.XOrOp: "xor",
}
_FLOAT_BINARY: Mapping[type[Operation], str] = {
    llvm.FAddOp: "fadd",
    llvm.FSubOp: "fsub",
    llvm.FMulOp: "fmul",
    llvm.FDivOp: "fdiv",
    llvm.FRemOp: "frem",
}
_CASTS: Mapping[type[Operation], str] = {
    llvm.TruncOp: "trunc",
    llvm.ZExtOp: "zext",
    llvm.SExtOp: "sext",
    llvm.BitcastOp: "bitcast",
    llvm.FPExtOp: "fpext",
    llvm.FPTruncOp: "fptrunc",
    llvm.SIToFPOp: "sitofp",
    llvm.PtrToIntOp: "ptrtoint",
    llvm.IntToPtrOp: "inttoptr",
    llvm_ext.UIToFPOp: "uitofp",
    llvm_ext.FPToSIOp: "fptosi",
    llvm_ext.FPToUIOp: "fptoui",
}
_WITHOUT_FLAGS: Mapping[type[Operation], str] = {
    llvm_ext.ExtractElementOp: "extractelement",
    llvm.InsertElementOp: "insertelement",
    llvm_ext.FreezeOp: "freeze",
}
_CONVENTIONS = {
    "ccc": "",
    "webkit_jscc": "webkit_jscc ",
    "anyregcc": "anyregcc ",
}
_ATOMIC_BINARY = {0: "xchg", 1: "add", 2: "sub", 3: "and", 5: "or", 6: "xor"}
_SIGNED_WRAP, _UNSIGNED_WRAP = 1, 2
_GEP_INBOUNDS, _GEP_UNSIGNED_SIGNED_WRAP, _GEP_NO_UNSIGNED_WRAP = 1, 2, 4


def fastmath_text(flags: FastMathAttr) -> str:
    """Returns the fast-math flags, each followed by a space."""
    return "".join([f"{flag.value} " for flag in sorted(flags.data)])


def convention_text(convention: llvm.CallingConventionAttr) -> str:
    """Returns the calling convention, followed by a space; "" for the default one."""
    name = convention.cconv_name
    return _CONVENTIONS.get(name, f"{name} ")


def _integer_binary(op: Any, names: FunctionNames) -> str:
    lhs, rhs = op.operands  # faster than by name
    return f"{_INTEGER_BINARY[type(op)]} {_integer_flags(op)}{names.typed(lhs)}, {names[rhs]}"


def _integer_flags(op: Operation) -> str:
    properties = op.properties
    overflow = properties.get("overflowFlags")
    if isinstance(overflow, IntegerAttr):
        bits = overflow.value.data
        return ("nuw " if bits & _UNSIGNED_WRAP else "") + ("nsw " if bits & _SIGNED_WRAP else "")
    if "isExact" in properties:
        return "exact "
    return "disjoint " if "isDisjoint" in properties else ""


def _float_binary(op: llvm.AbstractFloatArithOp, names: FunctionNames) -> str:
    flags, (lhs, rhs) = fastmath_text(op.fastmathFlags), op.operands
    return f"{_FLOAT_BINARY[type(op)]} {flags}{names.typed(lhs)}, {names[rhs]}"


def _cast(op: Operation, names: FunctionNames) -> str:
    flags = ""
    overflow = op.properties.get("overflowFlags")
    if isinstance(overflow, OverflowAttr):
        flags = "".join([f"{flag.value} " for flag in sorted(overflow.data, reverse=True)])
    elif "nonNeg" in op.properties:
        flags = "nneg "
    target = type_text(op.results[0].type)
    return f"{_CASTS[type(op)]} {flags}{names.typed(op.operands[0])} to {target}"


def _fneg(op: llvm.FNegOp, names: FunctionNames) -> str:
    return f"fneg {fastmath_text(op.fastmathFlags)}{names.typed(op.arg)}"


def _icmp(op: llvm_ext.ICmpOp, names: FunctionNames) -> str:
    predicate, (lhs, rhs) = llvm.ICmpPredicateFlag.from_int(op.predicate.value.data), op.operands
    return f"icmp {predicate.value} {names.typed(lhs)}, {names[rhs]}"


def _fcmp(op: llvm.FCmpOp, names: FunctionNames) -> str:
    predicate = llvm.FCmpPredicateFlag.from_int(op.predicate.value.data).value.removeprefix("_")
    flags = fastmath_text(op.fastmathFlags)
    return f"fcmp {flags}{predicate} {names.typed(op.lhs)}, {names[op.rhs]}"


def _select(op: llvm.SelectOp, names: FunctionNames) -> str:
    flags = fastmath_text(op.fastmathFlags)
    return f"select {flags}{names.typed_list([op.cond, op.lhs, op.rhs])}"


def _without_flags(op: Operation, names: FunctionNames) -> str:
    return f"{_WITHOUT_FLAGS[type(op)]} {names.typed_list(op.operands)}"


def _load(op: llvm.LoadOp, names: FunctionNames) -> str:
    ordering = _ordering(op.ordering)
    atomic = "atomic " if ordering else ""
    suffix = ordering + _alignment(op.alignment)
    return f"load {atomic}{names.type_of(op.results[0])}, {names.typed(op.operands[0])}{suffix}"


def _store(op: llvm.StoreOp, names: FunctionNames) -> str:
    ordering = _ordering(op.ordering)
    atomic = "atomic " if ordering else ""
    volatile = "volatile " if op.volatile_ is not None else ""
    suffix = ordering + _alignment(op.alignment)
    if op.nontemporal is not None:
        suffix += f", {NONTEMPORAL}"
    return f"store {atomic}{volatile}{names.typed_list(op.operands)}{suffix}"


def _atomicrmw(op: llvm_ext.AtomicRMWOp, names: FunctionNames) -> str:
    kind = _ATOMIC_BINARY.get(op.bin_op.value.data)
    if kind is None:
        raise CompilationError(
            f"llvm-ir: {op.name} with bin_op {op.bin_op.value.data} is not supported; supported are"
            f" {', '.join(f'{number} ({name})' for number, name in _ATOMIC_BINARY.items())}"
        )
    return f"atomicrmw {kind} {names.typed_list([op.ptr, op.val])}{_ordering(op.ordering)}"


def _ordering(ordering: IntegerAttr | None) -> str:
    value = ordering.value.data if ordering else 0
    return f" {llvm.ATOMIC_ORDERING_KEYWORDS[value]}" if value else ""


def _alignment(alignment: IntegerAttr | None) -> str:
    return f", align {alignment.value.data}" if alignment and alignment.value.data else ""


def _alloca(op: llvm.AllocaOp, names: FunctionNames) -> str:
    return f"alloca {type_text(op.elem_type)}, {names.typed(op.size)}{_alignment(op.alignment)}"


def _getelementptr(op: llvm.GEPOp, names: FunctionNames) -> str:
    pointer, *dynamic = map(names.typed, op.operands)
    indices = [
        dynamic.pop(0) if index == llvm.GEP_USE_SSA_VAL else f"i32 {index}"
        for index in op.rawConstantIndices.get_values()
    ]
    operands = ", ".join([type_text(op.elem_type), pointer, *indices])
    return f"getelementptr {_gep_flags(op)}{operands}"


def _gep_flags(op: llvm.GEPOp) -> str:
    bits = op.noWrapFlags.value.data
    inbounds = "inbounds " if op.inbounds is not None or bits & _GEP_INBOUNDS else ""
    nusw = "nusw " if bits & _GEP_UNSIGNED_SIGNED_WRAP and not inbounds else ""
    return inbounds + nusw + ("nuw " if bits & _GEP_NO_UNSIGNED_WRAP else "")


def _extractvalue(op: llvm.ExtractValueOp, names: FunctionNames) -> str:
    return f"extractvalue {names.typed(op.container)}{_path(op)}"


def _insertvalue(op: llvm.InsertValueOp, names: FunctionNames) -> str:
    return f"insertvalue {names.typed_list([op.container, op.value])}{_path(op)}"


def _path(op: llvm.ExtractValueOp | llvm.InsertValueOp) -> str:
    return "".join([f", {index}" for index in op.position.get_values()])


def _shufflevector(op: llvm.ShuffleVectorOp, names: FunctionNames) -> str:
    lanes = [int(lane) for lane in op.mask.get_values()]
    mask = ", ".join(["i32 poison" if lane < 0 else f"i32 {lane}" for lane in lanes])
    return f"shufflevector {names.typed_list([op.v1, op.v2])}, <{len(lanes)} x i32> <{mask}>"


def _call(op: llvm.CallOp, names: FunctionNames) -> str:
    if op.op_bundle_operands:
        raise CompilationError("llvm-ir: llvm.call with operand bundles is not supported")
    args = list(op.args)
    callee = symbol(op.callee.string_value()) if op.callee else names[args.pop(0)]
    tail = op.TailCallKind.data.value
    prefix = "" if tail == "none" else f"{tail} "
    flags, convention = fastmath_text(op.fastmathFlags), convention_text(op.CConv)
    if op.var_callee_type is not None:
        type_ = type_text(op.var_callee_type)
    else:
        type_ = "void" if op.returned is None else type_text(op.returned.type)
    return f"{prefix}call {flags}{convention}{type_} {callee}({names.typed_list(args)})"


def _inline_asm(op: llvm.InlineAsmOp, names: FunctionNames) -> str:
    tail = op.tail_call_kind.data.value
    prefix = "" if tail == "none" else f"{tail} "
    flags = [
        ("sideeffect ", isinstance(op.has_side_effects, UnitAttr)),
        ("alignstack ", isinstance(op.is_align_stack, UnitAttr)),
        ("inteldialect ", op.asm_dialect is not None and op.asm_dialect.value.data == 1),
    ]
    keywords = "".join([keyword for keyword, is_set in flags if is_set])
    text, constraints = quoted(op.asm_string.data.encode()), quoted(op.constraints.data.encode())
    type_ = "void" if op.res is None else type_text(op.res.type)
    args = names.typed_list(op.operands_)
    return f"{prefix}call {type_} asm {keywords}{text}, {constraints}({args})"


def _br(op: llvm.BrOp, names: FunctionNames) -> str:
    return f"br label %{names.edges(op)[0]}"


def _cond_br(op: llvm.CondBrOp, names: FunctionNames) -> str:
    then, otherwise = names.edges(op)
    return f"br {names.typed(op.cond)}, label %{then}, label %{otherwise}"


def _switch(op: llvm_ext.SwitchOp, names: FunctionNames) -> str:
    default, *labels = names.edges(op)
    type_ = type_text(op.value.type)
    cases = " ".join(
        f"{type_} {value}, label %{label}"
        for (value, _, _), label in zip(op.cases(), labels, strict=True)
    )
    return f"switch {names.typed(op.value)}, label %{default} [ {cases} ]"


def _return(op: llvm.ReturnOp, names: FunctionNames) -> str:
    return "ret void" if op.arg is None else f"ret {names.typed(op.arg)}"


def _unreachable(_: llvm.UnreachableOp, __: FunctionNames) -> str:
    return "unreachable"


INSTRUCTIONS: Mapping[type[Operation], Writer] = {
    **dict.fromkeys(_INTEGER_BINARY, _integer_binary),
    **dict.fromkeys(_FLOAT_BINARY, _float_binary),
    **dict.fromkeys(_CASTS, _cast),
    **dict.fromkeys(_WITHOUT_FLAGS, _without_flags),
    llvm.FNegOp: _fneg,
    llvm_ext.ICmpOp: _icmp,
    llvm.FCmpOp: _fcmp,
    llvm.SelectOp: _select,
    llvm.LoadOp: _load,
    llvm.StoreOp: _store,
    llvm_ext.AtomicRMWOp: _atomicrmw,
    llvm.AllocaOp: _alloca,
    llvm.GEPOp: _getelementptr,
    llvm.ExtractValueOp: _extractvalue,
    llvm.InsertValueOp: _insertvalue,
    llvm.ShuffleVectorOp: _shufflevector,
    llvm.CallOp: _call,
    llvm.InlineAsmOp: _inline_asm,
    llvm.BrOp: _br,
    llvm.CondBrOp: _cond_br,
    llvm_ext.SwitchOp: _switch,
    llvm.ReturnOp: _return,
    llvm.UnreachableOp: _unreachable,
}
