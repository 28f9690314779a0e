"""Ops in words, for users who read no MLIR."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Attribute, Operation

from byoc_mlir.compiler.debugging.explanation import DescribedOp
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.transforms.blocks import is_annotation, is_constant

_WRAPPERS = ("byoc.composite", FuncOp.name, CallOp.name, EmptyOp.name)
"""Ops that only hold others, call them, or stand for memory."""

_FORM = ("indexing_maps", "iterator_types", "operandSegmentSizes")
"""Attributes that say how an op is written, more than what it does."""


def described_ops(ops: Iterable[Operation]) -> tuple[DescribedOp, ...]:
    """The ops that compute something, in words."""
    return tuple(
        _described(op)
        for op in ops
        if op.name not in _WRAPPERS and not is_constant(op) and not is_annotation(op)
    )


def _described(op: Operation) -> DescribedOp:
    attributes = {name: _text(value) for name, value in op.properties.items() if name not in _FORM}
    return DescribedOp(relay_name(op), attributes, tuple(str(one.type) for one in op.results))


def _text(value: Attribute) -> str:
    if isinstance(value, DenseArrayBase):
        return str(list(cast("DenseArrayBase[Any]", value).get_values()))
    if isinstance(value, IntegerAttr | FloatAttr):
        return str(cast(Any, value).value.data)
    return f'"{value.data}"' if isinstance(value, StringAttr) else str(value)
