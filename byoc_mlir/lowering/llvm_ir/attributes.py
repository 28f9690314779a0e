"""Attributes of functions, arguments and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, TypeAttribute

from byoc_mlir.errors import CompilationError
from byoc_mlir.lowering.llvm_ir.constants import quoted, type_text

_ARGUMENT_KEYWORDS = {
    "llvm.noalias": "noalias",
    "llvm.nonnull": "nonnull",
    "llvm.noundef": "noundef",
    "llvm.nofree": "nofree",
    "llvm.nocapture": "captures(none)",
    "llvm.readonly": "readonly",
    "llvm.writeonly": "writeonly",
    "llvm.readnone": "readnone",
    "llvm.signext": "signext",
    "llvm.zeroext": "zeroext",
    "llvm.inreg": "inreg",
    "llvm.returned": "returned",
    "llvm.nest": "nest",
    "llvm.swiftself": "swiftself",
    "llvm.swifterror": "swifterror",
    "llvm.immarg": "immarg",
    "llvm.allocptr": "allocptr",
    "llvm.allocalign": "allocalign",
    "llvm.noreturn": "noreturn",
    "llvm.nosync": "nosync",
    "llvm.writable": "writable",
    "llvm.dead_on_unwind": "dead_on_unwind",
}
_ARGUMENT_SIZES = {
    "llvm.align": "align {}",
    "llvm.dereferenceable": "dereferenceable({})",
    "llvm.dereferenceable_or_null": "dereferenceable_or_null({})",
    "llvm.alignstack": "alignstack({})",
}
_ARGUMENT_TYPES = {
    "llvm.sret": "sret({})",
    "llvm.byval": "byval({})",
    "llvm.byref": "byref({})",
    "llvm.inalloca": "inalloca({})",
    "llvm.preallocated": "preallocated({})",
    "llvm.elementtype": "elementtype({})",
}
_FUNCTION_KEYWORDS = {
    "no_inline": "noinline",
    "always_inline": "alwaysinline",
    "inline_hint": "inlinehint",
    "no_unwind": "nounwind",
    "will_return": "willreturn",
    "noreturn": "noreturn",
    "optimize_none": "optnone",
    "optimize_size": "optsize",
    "minsize": "minsize",
    "convergent": "convergent",
    "hot": "hot",
    "cold": "cold",
    "returns_twice": "returns_twice",
}
_FUNCTION_STRINGS = {
    "target_cpu": "target-cpu",
    "tune_cpu": "tune-cpu",
    "frame_pointer": "frame-pointer",
    "target_features": "target-features",
}
_SIGNATURE = frozenset(
    {
        "sym_name",
        "function_type",
        "CConv",
        "linkage",
        "sym_visibility",
        "visibility_",
        "unnamed_addr",
        "arg_attrs",
        "res_attrs",
        "dso_local",
    }
)
"""Attributes that have other places in a function's header."""

_ENUM_ATTRIBUTES = frozenset(_FUNCTION_KEYWORDS.values()) | {
    "mustprogress",
    "nocallback",
    "nofree",
    "noimplicitfloat",
    "norecurse",
    "noredzone",
    "nosync",
    "nonlazybind",
    "naked",
    "ssp",
    "sspreq",
    "sspstrong",
    "strictfp",
    "uwtable",
}


def value_attributes(
    attributes: ArrayAttr[DictionaryAttr] | None, count: int, what: str
) -> Sequence[str]:
    """Returns the attributes of each argument or result, each followed by a space.

    Attributes of other dialects are omitted, since LLVM does not know them.

    Raises:
        CompilationError: an attribute of the llvm dialect is unknown.
    """
    if attributes is None:
        return [""] * count
    return [_value_attributes(entry.data, what) for entry in attributes.data] or [""] * count


def _value_attributes(attributes: Mapping[str, Attribute], what: str) -> str:
    return "".join(
        f"{_value_attribute(name, value, what)} "
        for name, value in attributes.items()
        if name.startswith("llvm.")
    )


def _value_attribute(name: str, value: Attribute, what: str) -> str:
    if name in _ARGUMENT_KEYWORDS:
        return _ARGUMENT_KEYWORDS[name]
    if name in _ARGUMENT_SIZES and isinstance(value, IntegerAttr):
        return _ARGUMENT_SIZES[name].format(value.value.data)
    if name in _ARGUMENT_TYPES and isinstance(value, TypeAttribute):
        return _ARGUMENT_TYPES[name].format(type_text(value))
    raise CompilationError(f"llvm-ir: attribute {name} = {value} on {what} is not supported")


def function_attributes(op: llvm.FuncOp) -> str:
    """Returns the attributes after the argument list, each preceded by a space.

    Raises:
        CompilationError: an attribute is unknown, and belongs to no other dialect.
    """
    found = {
        name: value
        for name, value in {**op.attributes, **op.properties}.items()
        if name not in _SIGNATURE and _is_for_llvm(name)
    }
    texts = [_function_attribute(name, value, op) for name, value in found.items()]
    return "".join([f" {text}" for text in texts])


def _is_for_llvm(name: str) -> bool:
    return "." not in name or name.startswith("llvm.")


def _function_attribute(name: str, value: Attribute, op: llvm.FuncOp) -> str:
    if name in _FUNCTION_KEYWORDS:
        return _FUNCTION_KEYWORDS[name]
    if name in _FUNCTION_STRINGS:
        return f'"{_FUNCTION_STRINGS[name]}"={quoted(_string(value).encode())}'
    if name == "passthrough" and isinstance(value, ArrayAttr):
        return " ".join([_passthrough(entry) for entry in value.data])
    raise CompilationError(
        f"llvm-ir: attribute {name} = {value} of function @{op.sym_name.data} is not supported"
    )


def _string(value: Attribute) -> str:
    match value:
        case StringAttr():
            return value.data
        case llvm.FramePointerKindAttr():
            return value.data.value
        case llvm.TargetFeaturesAttr():
            return ",".join(feature.data for feature in value.features)
        case _:
            raise CompilationError(f"llvm-ir: expected a string attribute, got {value}")


def _passthrough(entry: Attribute) -> str:
    match entry:
        case StringAttr(data=name):
            return name if name in _ENUM_ATTRIBUTES else quoted(name.encode())
        case ArrayAttr(data=(StringAttr(data=key), StringAttr(data=value))):
            return f"{quoted(key.encode())}={quoted(value.encode())}"
        case _:
            raise CompilationError(f"llvm-ir: passthrough entry {entry} is not supported")


def is_set(op: llvm.FuncOp | llvm.GlobalOp, name: str) -> bool:
    """True if a unit attribute is present, as a property or as a discardable attribute."""
    return isinstance(op.properties.get(name, op.attributes.get(name)), UnitAttr)
