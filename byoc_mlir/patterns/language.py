"""Pattern language for the graph above a value.

A pattern matches a *value*: the result of an op, a function argument or a constant. Patterns are
immutable, compared by identity, and may be shared: one pattern object stands for one value wherever
it occurs. The semantics are in `docs/patterns.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.errors import BackendError
from byoc_mlir.patterns.subjects import (
    ConstantValue,
    Subject,
    as_constant,
    attribute_mismatch,
    describe,
    dtype_mismatch,
    same_expression,
    shape_mismatch,
    type_mismatch,
)

COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum"})
"""Binary ops whose operands are matched in either order."""


class Pattern:  # no ABC: `isinstance` takes longer then, and a table asks it 30,000 times
    """Base of all patterns. `a | b` tries `a` first; `+ - * /` build calls of the Relay ops."""

    children: tuple[Pattern, ...] = ()
    """Patterns that this one consists of, in the order in which they are matched."""

    heads: frozenset[str] | None = frozenset()
    """Relay names that the root op of a match can have; `None`: any; empty: no op."""

    needs: frozenset[str] = frozenset()
    """Relay names of ops that every match has; a graph without them is not searched."""

    is_ambiguous: bool = False
    """True if one value can match in several ways."""

    def _consist_of(self, *children: Pattern) -> None:
        """Sets the sub-patterns, and derives the other fields from them; `heads` come from the
        first one.

        Raises:
            BackendError: a sub-pattern is no pattern.
        """
        for child in cast(Sequence[object], children):
            if not isinstance(child, Pattern) or isinstance(child, OperandsPattern):
                raise BackendError(
                    "the parts of a pattern must be patterns (an op is one once it is called,"
                    " `is_op(name)(...)`); None or is_tuple(...) only as all operands of a call;"
                    f" found {child}"
                )
        self.children = children
        self.heads = children[0].heads if children else None
        self.needs = frozenset().union(*[child.needs for child in children])
        self.is_ambiguous = True in [child.is_ambiguous for child in children]

    def __or__(self, other: Pattern) -> Pattern:
        return AltPattern(self, other)

    def __add__(self, other: Pattern) -> Pattern:
        return OpPattern(("add",))(self, other)

    def __sub__(self, other: Pattern) -> Pattern:
        return OpPattern(("subtract",))(self, other)

    def __mul__(self, other: Pattern) -> Pattern:
        return OpPattern(("multiply",))(self, other)

    def __truediv__(self, other: Pattern) -> Pattern:
        return OpPattern(("divide",))(self, other)

    def named(self, name: str) -> Pattern:
        """Names the pattern; a check gets the value that it matched as `match[name]`."""
        return NamedPattern(self, name)

    def optional(self, wrap: Callable[[Pattern], Pattern]) -> Pattern:
        """Returns a pattern that matches `wrap(self)` if possible, else `self`."""
        return AltPattern(wrap(self), self)

    def has_attr(self, attributes: Mapping[str, Any]) -> ConstrainedPattern:
        """Restricts the pattern to ops whose properties have these values.

        A property that the op lacks does not match. Values are attributes or Python values:
        `{"strides": [2, 2], "groups": 1}`.
        """
        wanted = dict(attributes)
        return ConstrainedPattern(self, lambda subject: attribute_mismatch(subject, wanted))

    def has_dtype(self, dtype: str) -> Pattern:
        """Restricts the pattern to tensors of an element type, `float32` or `f32`."""
        return ConstrainedPattern(self, lambda subject: dtype_mismatch(subject, dtype))

    def has_shape(self, shape: Sequence[int | None]) -> Pattern:
        """Restricts the pattern to tensors of the given shape; `None` accepts any size."""
        wanted = tuple(shape)
        return ConstrainedPattern(self, lambda subject: shape_mismatch(subject, wanted))

    def has_type(self, type_: Attribute) -> Pattern:
        """Restricts the pattern to values of exactly the given type."""
        return ConstrainedPattern(self, lambda subject: type_mismatch(subject, type_))

    def dominates(self, parent: Pattern, path: Pattern | None = None) -> Pattern:
        """Returns `dominates(parent, path, self)`: this pattern is the child."""
        return DominatorPattern(parent, path or WildcardPattern(), self)


Refinement: TypeAlias = Callable[[Pattern], Pattern]
"""Method of patterns with its arguments, for the call of an op."""


class LeafPattern(Pattern):
    """Pattern without sub-patterns, for a value defined outside of the match."""

    def refuse(self, value: SSAValue) -> str | None:
        """Returns what was expected and found, or `None` if the value fits."""
        raise NotImplementedError  # no ABC, for the reason of `Pattern`


class WildcardPattern(LeafPattern):
    """Pattern of any value. `wildcard()(conv)` is a call of any op that uses `conv`."""

    def __call__(self, *args: Pattern | None) -> CallPattern:
        """Matches a call of any op whose first operands match `args`; the remaining operands are
        inputs.
        """
        return CallPattern(None, args)

    def __str__(self) -> str:
        return "*"

    def refuse(self, value: SSAValue) -> str | None:
        return None


class ConstantPattern(LeafPattern):
    """Pattern of a constant, which is embedded in the composite."""

    def __str__(self) -> str:
        return "a constant"

    def refuse(self, value: SSAValue) -> str | None:
        return None if as_constant(value) else f"expected a constant, found {describe(value)}"


class VarPattern(LeafPattern):
    """Pattern of an argument of the function or of the region."""

    def __init__(self, name: str):
        self.name = name

    def __str__(self) -> str:
        return f"argument %{self.name}" if self.name else "an argument"

    def refuse(self, value: SSAValue) -> str | None:
        if not isinstance(value, BlockArgument) or self.name not in ("", value.name_hint):
            return f"expected {self}, found {describe(value)}"
        return None


class ExprPattern(LeafPattern):
    """Pattern of a given expression; a constant with given content is embedded."""

    def __init__(self, expression: SSAValue | ConstantValue):
        self.expression = expression

    def __str__(self) -> str:
        if isinstance(self.expression, SSAValue):
            return f"the expression {describe(self.expression)}"
        return f"the constant {self.expression}"

    def refuse(self, value: SSAValue) -> str | None:
        if same_expression(self.expression, value):
            return None
        return f"expected {self}, found {describe(value)}"


class NamedPattern(Pattern):
    """Pattern with a name for checks."""

    def __init__(self, inner: Pattern, name: str):
        self._consist_of(inner)
        self.inner = inner
        self.name = name

    def __str__(self) -> str:
        return str(self.inner)


class ConstrainedPattern(Pattern):
    """Pattern with a condition on the matched value."""

    def __init__(self, inner: Pattern, refuse: Callable[[Subject], str | None]):
        self._consist_of(inner)
        self.inner = inner
        self.refuse = refuse

    def __call__(self, *args: Pattern | None) -> Pattern:
        """Calls the inner pattern: `p.has_attr(…)(q)` stands for `p(q).has_attr(…)`."""
        if not isinstance(self.inner, WildcardPattern | ConstrainedPattern):
            raise BackendError(f"{self} is a value and cannot be called; call is_op or wildcard()")
        return ConstrainedPattern(self.inner(*args), self.refuse)

    def __str__(self) -> str:
        return str(self.inner)


class AltPattern(Pattern):
    """Pattern that matches `first`, or else `second`."""

    def __init__(self, first: Pattern, second: Pattern):
        self._consist_of(first, second)
        self.first = first
        self.second = second
        self.needs = first.needs & second.needs
        self.is_ambiguous = True
        if first.heads is not None:
            self.heads = None if second.heads is None else first.heads | second.heads

    def __str__(self) -> str:
        names, first = [str(self.second)], self.first
        while isinstance(first, AltPattern):  # as `a | b | c` is written, however long
            names.append(str(first.second))
            first = first.first
        return f"({' or '.join([str(first), *reversed(names)])})"


class CallPattern(Pattern):
    """Pattern of an op with one of `names` (any op if `None`), whose operands match `args`.

    `args` is `None` if the operands are free. For any op, `args` are its first operands.
    """

    def __init__(self, names: tuple[str, ...] | None, args: Sequence[Pattern | None]):
        self.names = names
        self.args = _operand_patterns(args)
        self._consist_of(*(self.args or ()))
        self.heads = None if names is None else frozenset(names)
        if names and len(names) == 1:
            self.needs |= self.heads or frozenset()
        if self.args and (names is None or not COMMUTATIVE.isdisjoint(names)):
            self.is_ambiguous = True

    def accepts(self, op: Operation) -> bool:
        """True if the op's name fits."""
        return self.names is None or relay_name(op) in self.names

    def __str__(self) -> str:
        return "any op" if self.names is None else " or ".join(self.names)


class ItemPattern(Pattern):
    """Pattern of result `index` of an op with several results; any of them if `index` is `None`."""

    def __init__(self, inner: Pattern, index: int | None):
        self._consist_of(inner)
        self.inner = inner
        self.index = index

    def __str__(self) -> str:
        which = "a result" if self.index is None else f"result #{self.index}"
        return f"{which} of {self.inner}"


class DominatorPattern(Pattern):
    """Pattern of `child` whose operands lead to one `parent`, over any number of ops that match
    `path`.
    """

    def __init__(self, parent: Pattern, path: Pattern, child: Pattern):
        self.parent = parent
        self.path = path
        self.child = child
        self._consist_of(child, path, parent)
        self.needs = child.needs | parent.needs
        self.is_ambiguous = True

    def __str__(self) -> str:
        return f"{self.child} and its dominator {self.parent}"


class OpPattern:
    """Name of an op, to be called with patterns for its operands.

    `is_op("add") | is_op("nn.bias_add")` accepts either name. It has the methods of patterns, which
    apply to the call: `is_op(name).has_attr(a)(p)` is `is_op(name)(p).has_attr(a)`.
    """

    def __init__(self, names: tuple[str, ...], refinements: Sequence[Refinement] = ()):
        self.names = names
        self.refinements = tuple(refinements)

    def __or__(self, other: OpPattern | Pattern) -> OpPattern:
        if not isinstance(other, OpPattern) or self.refinements or other.refinements:
            raise BackendError(
                "`|` of ops joins names alone: is_op(a) | is_op(b); to choose between ops with"
                " operands or attributes, call both, is_op(a)(...).has_attr(...) | is_op(b)(...)"
            )
        return OpPattern(self.names + other.names)

    def __call__(self, *args: Pattern | None) -> Pattern:
        """Matches the op with these operands; `is_op("concatenate")(None)` leaves them free."""
        pattern: Pattern = CallPattern(self.names, args)
        for refine in self.refinements:
            pattern = refine(pattern)
        return pattern

    def _refined(self, refine: Refinement) -> OpPattern:
        return OpPattern(self.names, (*self.refinements, refine))

    def named(self, name: str) -> OpPattern:
        """Names the call; see `Pattern.named`."""
        return self._refined(lambda call: call.named(name))

    def optional(self, wrap: Callable[[Pattern], Pattern]) -> OpPattern:
        """Wraps the call if possible; see `Pattern.optional`."""
        return self._refined(lambda call: call.optional(wrap))

    def has_attr(self, attributes: Mapping[str, Any]) -> OpPattern:
        """Restricts the op's properties; see `Pattern.has_attr`."""
        wanted = dict(attributes)
        return self._refined(lambda call: call.has_attr(wanted))

    def has_dtype(self, dtype: str) -> OpPattern:
        """Restricts the result's element type; see `Pattern.has_dtype`."""
        return self._refined(lambda call: call.has_dtype(dtype))

    def has_shape(self, shape: Sequence[int | None]) -> OpPattern:
        """Restricts the result's shape; see `Pattern.has_shape`."""
        wanted = tuple(shape)
        return self._refined(lambda call: call.has_shape(wanted))

    def has_type(self, type_: Attribute) -> OpPattern:
        """Restricts the result's type; see `Pattern.has_type`."""
        return self._refined(lambda call: call.has_type(type_))

    def dominates(self, parent: Pattern, path: Pattern | None = None) -> OpPattern:
        """Adds a dominator of the call; see `Pattern.dominates`."""
        return self._refined(lambda call: call.dominates(parent, path))


class OperandsPattern(Pattern):
    """Pattern of a variadic op's operands, as TVM's tuple of fields; `None` leaves them free."""

    def __init__(self, fields: Sequence[Pattern] | None):
        self.fields = None if fields is None else tuple(fields)

    def __str__(self) -> str:
        return "operands"


def _operand_patterns(args: Sequence[Pattern | None]) -> tuple[Pattern, ...] | None:
    if len(args) == 1:
        only = args[0]
        if only is None:
            return None
        if isinstance(only, OperandsPattern):
            return only.fields
    return tuple(cast(Sequence[Pattern], args))
