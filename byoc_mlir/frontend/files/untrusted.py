"""Safety check of untrusted `.mlir` files: a model may only compute.

Allowed ops, attributes and types are listed; anything else is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.abi import NAME
from byoc_mlir.dialects.byoc import REASON, REFUSED
from byoc_mlir.dialects.relay import RelayOp, WeightAttr
from byoc_mlir.dialects.relay.base import Tensor
from byoc_mlir.dialects.relay.control import BindOp, ControlOp
from byoc_mlir.dialects.relay.ml import TreeEnsembleOp
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.dialects.relay.size import CONSTANT_NAME
from byoc_mlir.errors import UnsafeModelError
from byoc_mlir.frontend.files.mlir_file import placed

_ACCEPTED = (
    "functions with a body, relay ops on tensors of static shapes, and what"
    " convert-tensors-to-relay makes relay ops of: arith and math on tensors, tensor ops that move"
    " elements, linalg's named element-wise ops, fill, copy, matmul and transpose, and scf.for"
)

_UPSTREAM = frozenset({"arith", "linalg", "math", "scf", "tensor"})

_UNCHECKED = (BindOp, OnnxNodeOp, TreeEnsembleOp)
"""Ops whose attributes decide which memory is read, or what runs."""

_NOTES = frozenset({CONSTANT_NAME, REASON, REFUSED})
"""Attributes that passes only report."""

_VALUES = AnyFloat | IntegerAttr | IntegerType | FloatAttr | StringAttr | WeightAttr
_LISTS = DenseArrayBase | DenseIntOrFPElementsAttr

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def has_upstream_ops(module: ModuleOp) -> bool:
    """True if the module has ops that `convert-tensors-to-relay` may convert."""
    return any(op.name.partition(".")[0] in _UPSTREAM for op in module.walk())


def check_untrusted(module: ModuleOp, name: str) -> None:
    """Checks that a verified module only computes with its own tensors.

    Args:
        name: name of the module in errors.

    Raises:
        UnsafeModelError: the module has an op, attribute or type that is not allowed.
    """
    called = Counter([_MAIN])
    for op in module.walk():
        reason = _refusal(op, module)
        if isinstance(op, ControlOp):
            called.update({symbol.string_value() for symbol in op.symbols()})
            reason = next((f"@{f} has several callers" for f, n in called.items() if n > 1), reason)
        if reason:
            raise UnsafeModelError(
                f"{name}: {reason}. A file may hold {_ACCEPTED}; trusted=True, --trusted on the"
                " command line, accepts all ops, which may run any native code"
            )


_MAIN = "main"
"""Function that the runtime calls."""


def _refusal(op: Operation, module: ModuleOp) -> str:
    """Returns why an op is refused, or "" if it is accepted."""
    at = placed(op)
    is_allowed = op is module or isinstance(op, FuncOp | ReturnOp | RelayOp)
    if not is_allowed or isinstance(op, _UNCHECKED):
        return at
    notes = [key for key in op.attributes if key not in _NOTES or not isinstance(op, RelayOp)]
    if notes:
        return f"{at} has the attribute {notes[0]}"
    if isinstance(op, FuncOp):
        return _refused_function(op, module)
    for key, value in op.properties.items() if isinstance(op, RelayOp) else ():
        is_callee = isinstance(value, SymbolRefAttr) and isinstance(op, ControlOp)
        if not is_callee and not _is_plain(value):
            return f"{at} has {key} = {value}"
    wrong = [value.type for value in op.results if not _is_static(value)]
    return f"{at} has a result of {wrong[0]}" if wrong else ""


def _refused_function(op: FuncOp, module: ModuleOp) -> str:
    name = f"@{op.sym_name.data}"
    if op.parent is not module.body.block or not _IDENTIFIER.fullmatch(op.sym_name.data):
        return f"the function {name} is nested, or its name is no identifier"
    if len(op.body.blocks) != 1:
        return f"the function {name} has {len(op.body.blocks)} blocks; accepted is one"
    for attributes in (op.arg_attrs, op.res_attrs):
        for entry in attributes or ():
            given = entry.data.items()
            unknown = [k for k, v in given if k != NAME or not isinstance(v, StringAttr)]
            if unknown:
                return f"the function {name} has the attribute {unknown[0]}"
    wrong = [value.type for value in op.body.block.args if not _is_static(value)]
    return f"the function {name} has an argument of {wrong[0]}" if wrong else ""


def _is_plain(value: Attribute) -> bool:
    """True if an attribute is a number, text, a list of them, or an element type."""
    if isinstance(value, ArrayAttr):
        return all(map(_is_plain, cast(ArrayAttr[Attribute], value)))
    return isinstance(value, _VALUES | _LISTS)


def _is_static(value: SSAValue) -> bool:
    type_ = value.type
    return (
        isinstance(type_, TensorType)
        and type_.has_static_shape()
        and isinstance(cast(Tensor, type_).encoding, NoneAttr)
    )
