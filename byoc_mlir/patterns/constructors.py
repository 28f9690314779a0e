"""The names with which patterns are written, those of TVM's pattern language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.patterns.language import (
    ConstantPattern,
    DominatorPattern,
    ExprPattern,
    ItemPattern,
    OperandsPattern,
    OpPattern,
    Pattern,
    VarPattern,
    WildcardPattern,
)
from byoc_mlir.patterns.subjects import ConstantValue


def wildcard() -> WildcardPattern:
    """Any value; see `WildcardPattern` for calling it."""
    return WildcardPattern()


def is_op(name: str) -> OpPattern:
    """The op with that Relay name (`nn.conv2d`), or full name outside of `relay`."""
    return OpPattern((name,))


def is_constant() -> Pattern:
    """A constant, which becomes part of the composite's body."""
    return ConstantPattern()


def is_var(name: str = "") -> Pattern:
    """An argument of the function, by name when one is given."""
    return VarPattern(name)


def is_expr(expression: SSAValue | Operation | ConstantValue) -> Pattern:
    """A given expression.

    Args:
        expression: a value or the op that makes it (matched structurally), a number (a constant
            whose elements all equal it) or an array (a constant with that content).
    """
    if isinstance(expression, Operation):
        return ExprPattern(expression.results[0])
    return ExprPattern(expression)


def is_tuple(fields: Sequence[Pattern] | None = None) -> Pattern:
    """The operands of a variadic op, `is_op("concatenate")(is_tuple([a, b]))`."""
    return OperandsPattern(fields)


def is_tuple_get_item(pattern: Pattern, index: int | None = None) -> Pattern:
    """Result `index` of an op with several results; any of them when `index` is `None`."""
    return ItemPattern(pattern, index)


def has_attr(pattern: Pattern, attributes: Mapping[str, Any]) -> Pattern:
    """`pattern.has_attr(attributes)`."""
    return pattern.has_attr(attributes)


def has_dtype(dtype: str, pattern: Pattern | None = None) -> Pattern:
    """`pattern.has_dtype(dtype)`; any value without a pattern."""
    return (pattern or wildcard()).has_dtype(dtype)


def has_shape(shape: Sequence[int | None], pattern: Pattern | None = None) -> Pattern:
    """`pattern.has_shape(shape)`; any value without a pattern."""
    return (pattern or wildcard()).has_shape(shape)


def has_type(type_: Attribute, pattern: Pattern | None = None) -> Pattern:
    """`pattern.has_type(type_)`; any value without a pattern."""
    return (pattern or wildcard()).has_type(type_)


def dominates(parent: Pattern, path: Pattern, child: Pattern) -> Pattern:
    """`child` whose operands all lead, over `path` ops, to the same `parent`.

    Arguments and constants on the way are inputs; nothing between parent and child may be used
    outside.
    """
    return DominatorPattern(parent, path, child)
