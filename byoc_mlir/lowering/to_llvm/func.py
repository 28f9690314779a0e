"""Lowerings of `func` and `cf` to `llvm`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import cf, func, llvm
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, MemRefType, UnitAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.abi import MAY_ALIAS, STEP
from byoc_mlir.kernels import ops
from byoc_mlir.lowering.to_llvm.emitter import Emitter, Lowerings
from byoc_mlir.lowering.to_llvm.types import convert_type


def _br(op: cf.BranchOp, emitter: Emitter) -> Sequence[SSAValue]:
    emitter.add(ops.branch(emitter.successor(op.successors[0]), emitter.all(op.operands)))
    return ()


def _cond_br(op: cf.ConditionalBranchOp, emitter: Emitter) -> Sequence[SSAValue]:
    then = emitter.successor(op.then_block), emitter.all(op.then_arguments)
    otherwise = emitter.successor(op.else_block), emitter.all(op.else_arguments)
    emitter.add(ops.branch_if(emitter[op.cond], then, otherwise))
    return ()


_MEMREF_ATTRIBUTES = {
    "llvm.noalias": UnitAttr(),
    "llvm.nonnull": UnitAttr(),
    "llvm.noundef": UnitAttr(),
}


def lower_function(op: func.FuncOp, body: Region) -> llvm.FuncOp:
    """Returns the `llvm.func` with the name and signature of `op`, and the given body.

    Memref arguments become pointers that are `noalias` (unless marked `byoc.may_alias`), `nonnull`
    and `noundef`; a private definition gets internal linkage.
    """
    is_internal = op.body.blocks and op.sym_visibility and op.sym_visibility.data == "private"
    lowered = llvm.FuncOp(
        op.sym_name.data,
        lower_signature(op.sym_name.data, op.function_type),
        llvm.LinkageAttr("internal" if is_internal else "external"),
        body=body,
        other_props={"arg_attrs": _argument_attributes(op), "res_attrs": op.res_attrs},
        extra_attrs=op.attributes,
    )
    lowered.location = op.location
    return lowered


def lower_signature(name: str, type_: FunctionType) -> llvm.LLVMFunctionType:
    """Returns the type of the lowered function."""
    results = type_.outputs.data
    if len(results) > 1 or any(isinstance(result, MemRefType) for result in results):
        found = ", ".join(str(result) for result in results)
        raise PassFailedException(
            f"func.func @{name} returns ({found}); at this stage a function returns nothing or one "
            "scalar, and buffers are passed as arguments"
        )
    output = convert_type(results[0]) if results else None
    return llvm.LLVMFunctionType([convert_type(type_) for type_ in type_.inputs], output)


def _argument_attributes(op: func.FuncOp) -> ArrayAttr[DictionaryAttr]:
    inputs = op.function_type.inputs.data
    given = op.arg_attrs.data if op.arg_attrs else [DictionaryAttr({})] * len(inputs)
    return ArrayAttr(
        DictionaryAttr(_attributes_of(type_, attributes.data))
        for type_, attributes in zip(inputs, given, strict=True)
    )


def _attributes_of(type_: Attribute, given: Mapping[str, Attribute]) -> dict[str, Attribute]:
    if not isinstance(type_, MemRefType):
        return dict(given)
    added: dict[str, Attribute] = dict(_MEMREF_ATTRIBUTES)
    if MAY_ALIAS in given:
        del added["llvm.noalias"]
    return added | {name: value for name, value in given.items() if name != MAY_ALIAS}


def _call(op: func.CallOp, emitter: Emitter) -> Sequence[SSAValue]:
    result_types = [convert_type(type_) for type_ in op.result_types]
    result = result_types[0] if result_types else None
    call = ops.call(op.callee, emitter.all(op.operands), result)
    if STEP in op.attributes:
        call.attributes[STEP] = op.attributes[STEP]
    emitter.add(call)
    return call.results


def _return(op: func.ReturnOp, emitter: Emitter) -> Sequence[SSAValue]:
    values = emitter.all(op.arguments)
    emitter.add(llvm.ReturnOp(values[0] if values else None))
    return ()


LOWERINGS: Lowerings = {
    cf.BranchOp: _br,
    cf.ConditionalBranchOp: _cond_br,
    func.CallOp: _call,
    func.ReturnOp: _return,
}
