"""Constructors of common `llvm` ops, without xDSL's generic constructors.

The generic constructors check and convert every argument and build each attribute anew, which takes
ten times as long as the op itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from byoc_mlir.dialects import llvm_ext

POINTER = llvm.LLVMPointerType()
INTERNAL, EXTERNAL = llvm.LinkageAttr("internal"), llvm.LinkageAttr("external")

_NOT_ATOMIC = IntegerAttr(0, i64)
_NO_FLAGS = IntegerAttr(0, i32)
_ATOMIC_ADD, _MONOTONIC = IntegerAttr(1, i64), IntegerAttr(2, i64)
_MAY_OVERFLOW = frozenset({llvm.AddOp, llvm.SubOp, llvm.MulOp, llvm.ShlOp})
_NO_SIGNED_WRAP = IntegerAttr(1, i32)
_UNIT = UnitAttr()
_NO_FAST_MATH = llvm.FastMathAttr(None)
_C_CONVENTION = llvm.CallingConventionAttr("ccc")
_NO_TAIL_CALL = llvm.TailCallKindAttr(llvm.TailCallKind.NONE)
_NO_BUNDLES = DenseArrayBase.from_list(i32, ())

Index = SSAValue | int
"""Index: an `i64` value, or a number known at compile time, which must fit in 32 bits."""


def function(
    name: str, type_: llvm.LLVMFunctionType, linkage: llvm.LinkageAttr, body: Region
) -> llvm.FuncOp:
    """Builds a function; one without a body is a declaration."""
    return llvm.FuncOp.create(
        properties={
            "sym_name": StringAttr(name),
            "function_type": type_,
            "CConv": _C_CONVENTION,
            "linkage": linkage,
            "visibility_": _NOT_ATOMIC,
        },
        regions=[body],
    )


def constant_global(
    name: str, type_: Attribute, linkage: llvm.LinkageAttr, value: Mapping[str, Attribute]
) -> llvm.GlobalOp:
    """Builds a constant, a declaration if there is no property `value`."""
    return llvm.GlobalOp.create(
        properties={
            "global_type": type_,
            "sym_name": StringAttr(name),
            "linkage": linkage,
            "addr_space": _NO_FLAGS,
            "constant": _UNIT,
            **value,
        },
        regions=[Region()],
    )


def load(pointer: SSAValue, type_: Attribute, alignment: int | None = None) -> llvm.LoadOp:
    """Builds a plain load; without `alignment`, the address is aligned as the type requires."""
    return llvm.LoadOp.create(
        operands=[pointer],
        result_types=[type_],
        properties={"ordering": _NOT_ATOMIC, **_alignment(alignment)},
    )


def store(
    value: SSAValue, pointer: SSAValue, alignment: int | None = None, *, nontemporal: bool = False
) -> llvm.StoreOp:
    """Builds a plain store; without `alignment`, the address is aligned as the type requires."""
    hint = {"nontemporal": _UNIT} if nontemporal else {}
    return llvm.StoreOp.create(
        operands=[value, pointer],
        properties={"ordering": _NOT_ATOMIC, **_alignment(alignment), **hint},
    )


def offset(
    pointer: SSAValue, index: Index, element: Attribute, *, inbounds: bool = True
) -> llvm.GEPOp:
    """Builds the address `index` elements after `pointer`, by default within the same object."""
    return llvm.GEPOp.create(
        operands=[pointer] if isinstance(index, int) else [pointer, index],
        result_types=[POINTER],
        properties={
            "elem_type": element,
            "noWrapFlags": _NO_FLAGS,
            "rawConstantIndices": i32_array(
                index if isinstance(index, int) else llvm.GEP_USE_SSA_VAL
            ),
            **({"inbounds": _UNIT} if inbounds else {}),
        },
    )


def float_arithmetic(
    op: type[llvm.FAddOp | llvm.FSubOp | llvm.FMulOp],
    lhs: SSAValue,
    rhs: SSAValue,
    flags: llvm.FastMathAttr,
) -> Operation:
    """Builds a sum, difference or product of floats."""
    return op.create(
        operands=[lhs, rhs], result_types=[lhs.type], properties={"fastmathFlags": flags}
    )


def integer_arithmetic(op: type[Operation], lhs: SSAValue, rhs: SSAValue) -> Operation:
    """Builds an op on two integers, or on vectors of them, without flags."""
    properties = {"overflowFlags": _NO_FLAGS} if op in _MAY_OVERFLOW else {}
    return op.create(operands=[lhs, rhs], result_types=[lhs.type], properties=properties)


def unary(op: type[Operation], value: SSAValue, type_: Attribute) -> Operation:
    """Builds an op with one operand and without flags, such as most conversions."""
    return op.create(operands=[value], result_types=[type_])


def shuffle(one: SSAValue, other: SSAValue, lanes: tuple[int, ...]) -> llvm.ShuffleVectorOp:
    """Builds a shuffle of two vectors of one type; `lanes` counts through both vectors."""
    type_ = one.type
    assert isinstance(type_, VectorType)
    return llvm.ShuffleVectorOp.create(
        operands=[one, other],
        result_types=[vector_type(type_.element_type, len(lanes))],
        properties={"mask": i32_array(*lanes)},
    )


def atomic_add(address: SSAValue, number: SSAValue) -> llvm_ext.AtomicRMWOp:
    """Builds an atomic addition without an order of other accesses."""
    return llvm_ext.AtomicRMWOp.create(
        operands=[address, number],
        properties={"bin_op": _ATOMIC_ADD, "ordering": _MONOTONIC},
        result_types=[number.type],
    )


def select(condition: SSAValue, one: SSAValue, other: SSAValue) -> llvm.SelectOp:
    """Builds a select: `one` if `condition` holds, otherwise `other`."""
    return llvm.SelectOp.create(
        operands=[condition, one, other],
        result_types=[one.type],
        properties={"fastmathFlags": _NO_FAST_MATH},
    )


def address(symbol: str) -> llvm.AddressOfOp:
    """Builds the address of a global or a function."""
    return llvm.AddressOfOp.create(
        result_types=[POINTER], properties={"global_name": symbol_reference(symbol)}
    )


def intrinsic(name: str, arguments: Sequence[SSAValue], result: Attribute) -> llvm.CallIntrinsicOp:
    """Builds a call of an LLVM intrinsic with a result."""
    return llvm.CallIntrinsicOp.create(
        operands=arguments,
        result_types=[result],
        properties={
            "intrin": _name(name),
            "op_bundle_sizes": _NO_BUNDLES,
            "operandSegmentSizes": i32_array(len(arguments), 0),
            "fastmathFlags": _NO_FAST_MATH,
        },
    )


def compare(predicate: str, lhs: SSAValue, rhs: SSAValue) -> llvm_ext.ICmpOp:
    """Builds a comparison of two integers or pointers, or of vectors of integers."""
    type_ = lhs.type
    return llvm_ext.ICmpOp.create(
        operands=[lhs, rhs],
        result_types=[VectorType(i1, type_.shape) if isinstance(type_, VectorType) else i1],
        properties={"predicate": _predicate(predicate)},
    )


def add_no_wrap(lhs: SSAValue, rhs: SSAValue) -> llvm.AddOp:
    """Builds a sum that must not overflow as a signed number (`nsw`)."""
    return llvm.AddOp.create(
        operands=[lhs, rhs],
        result_types=[lhs.type],
        properties={"overflowFlags": _NO_SIGNED_WRAP},
    )


def multiply_no_wrap(lhs: SSAValue, rhs: SSAValue) -> llvm.MulOp:
    """Builds a product that must not overflow as a signed number (`nsw`)."""
    return llvm.MulOp.create(
        operands=[lhs, rhs],
        result_types=[lhs.type],
        properties={"overflowFlags": _NO_SIGNED_WRAP},
    )


def call(
    callee: SymbolRefAttr, arguments: Sequence[SSAValue], result: Attribute | None
) -> llvm.CallOp:
    """Builds a plain call of a function, which has no result if `result` is `None`."""
    return _call({"callee": callee}, arguments, result)


def call_at(address: SSAValue, arguments: Sequence[SSAValue]) -> llvm.CallOp:
    """Builds a plain call of the function at an address, which has no result."""
    return _call({}, [address, *arguments], None)


def _call(
    callee: Mapping[str, Attribute], arguments: Sequence[SSAValue], result: Attribute | None
) -> llvm.CallOp:
    return llvm.CallOp.create(
        operands=arguments,
        result_types=[] if result is None else [result],
        properties={
            **callee,
            "fastmathFlags": _NO_FAST_MATH,
            "CConv": _C_CONVENTION,
            "TailCallKind": _NO_TAIL_CALL,
            "op_bundle_sizes": _NO_BUNDLES,
            "operandSegmentSizes": i32_array(len(arguments), 0),
        },
    )


def return_(value: SSAValue | None) -> llvm.ReturnOp:
    """Builds a return, without a value if `value` is `None`."""
    return llvm.ReturnOp.create(operands=[] if value is None else [value])


def branch(target: Block, arguments: Sequence[SSAValue]) -> llvm.BrOp:
    """Builds an unconditional branch."""
    return llvm.BrOp.create(operands=arguments, successors=[target])


def branch_if(
    condition: SSAValue,
    then: tuple[Block, Sequence[SSAValue]],
    otherwise: tuple[Block, Sequence[SSAValue]],
) -> llvm.CondBrOp:
    """Builds a branch to one of two blocks, each with its arguments."""
    return llvm.CondBrOp.create(
        operands=[condition, *then[1], *otherwise[1]],
        properties={"operandSegmentSizes": i32_array(1, len(then[1]), len(otherwise[1]))},
        successors=[then[0], otherwise[0]],
    )


@lru_cache
def _predicate(name: str) -> Attribute:
    return IntegerAttr(llvm.ICmpPredicateFlag(name).to_int(), i64)


@lru_cache(maxsize=4096)
def i32_array(*numbers: int) -> DenseArrayBase:
    """Returns an array of `i32`; the same object for equal numbers."""
    return DenseArrayBase.from_list(i32, numbers)


@lru_cache(maxsize=4096)
def vector_type(element: Attribute, lanes: int) -> VectorType[Any]:
    """Returns a vector type; the same object for equal arguments."""
    return VectorType(element, [lanes])


@lru_cache(maxsize=4096)
def symbol_reference(name: str) -> SymbolRefAttr:
    """Returns a reference to a function or global; the same object for equal names."""
    return SymbolRefAttr(name)


@lru_cache(maxsize=4096)
def _name(name: str) -> StringAttr:
    return StringAttr(name)


def _alignment(alignment: int | None) -> dict[str, Attribute]:
    return {} if alignment is None else {"alignment": integer_attribute(alignment, i64)}


@lru_cache(maxsize=4096)
def integer_attribute(value: int, type_: IntegerType) -> IntegerAttr[IntegerType]:
    """Returns an integer attribute, truncated to the type; the same object for equal arguments."""
    return IntegerAttr(value, type_, truncate_bits=True)
