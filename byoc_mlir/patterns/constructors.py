"""Constructors of patterns, with the names of TVM's pattern language."""

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
    """Matches any value; see `WildcardPattern` for calling it."""
    return WildcardPattern()


def is_op(name: str) -> OpPattern:
    """Matches the op with the given Relay name (`nn.conv2d`), or full name outside of `relay`."""
    return OpPattern((name,))


def is_constant() -> Pattern:
    """Matches a constant; the body of the composite contains it."""
    return ConstantPattern()


def is_var(name: str = "") -> Pattern:
    """Matches an argument of the function, by name if one is given."""
    return VarPattern(name)


def is_expr(expression: SSAValue | Operation | ConstantValue) -> Pattern:
    """Matches a given expression.

    Args:
        expression: a value or the op that defines it (matched structurally), a number (a constant
            whose elements all equal it) or an array (a constant with that content).
    """
    if isinstance(expression, Operation):
        return ExprPattern(expression.results[0])
    return ExprPattern(expression)


def is_tuple(fields: Sequence[Pattern] | None = None) -> Pattern:
    """Matches the operands of a variadic op, `is_op("concatenate")(is_tuple([a, b]))`."""
    return OperandsPattern(fields)


def is_tuple_get_item(pattern: Pattern, index: int | None = None) -> Pattern:
    """Matches result `index` of an op with several results; any of them if `index` is `None`."""
    return ItemPattern(pattern, index)


def has_attr(pattern: Pattern, attributes: Mapping[str, Any]) -> Pattern:
    """Returns `pattern.has_attr(attributes)`."""
    return pattern.has_attr(attributes)


def has_dtype(dtype: str, pattern: Pattern | None = None) -> Pattern:
    """Returns `pattern.has_dtype(dtype)`; without a pattern, matches any tensor of that type."""
    return (pattern or wildcard()).has_dtype(dtype)


def has_shape(shape: Sequence[int | None], pattern: Pattern | None = None) -> Pattern:
    """Returns `pattern.has_shape(shape)`; without a pattern, matches any tensor of that shape."""
    return (pattern or wildcard()).has_shape(shape)


def has_type(type_: Attribute, pattern: Pattern | None = None) -> Pattern:
    """Returns `pattern.has_type(type_)`; without a pattern, matches any value of that type."""
    return (pattern or wildcard()).has_type(type_)


def dominates(parent: Pattern, path: Pattern, child: Pattern) -> Pattern:
    """Matches `child` whose operands all lead, over `path` ops, to the same `parent`.

    Arguments and constants on the path become inputs. Ops between parent and child have no users
    outside the match.
    """
    return DominatorPattern(parent, path, child)
