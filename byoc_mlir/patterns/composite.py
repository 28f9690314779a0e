"""Rows of a pattern table, and what a match of one looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.errors import BackendError
from byoc_mlir.patterns.language import Pattern
from byoc_mlir.patterns.subjects import Subject, as_constant


@dataclass(frozen=True)
class Match:
    """The part of a graph that a pattern matched; what a check decides on.

    `match["bias"]` is the value that the sub-pattern named `bias` matched.
    """

    root: Operation
    """The op that all others lead to."""
    results: tuple[SSAValue, ...]
    """The values that leave the match: all results of the root, or the one result asked for."""
    ops: tuple[Operation, ...]
    """All ops of the match, operands before users, the root last."""
    inputs: tuple[SSAValue, ...]
    """Values from outside, in the order of the composite's parameters."""
    constants: tuple[SSAValue, ...]
    """Constants that become part of the body."""
    captures: Mapping[str | Pattern, Subject] = field(repr=False)
    """What named sub-patterns, and pattern objects, matched."""

    def __contains__(self, key: str | Pattern) -> bool:
        return key in self.captures

    def __getitem__(self, key: str | Pattern) -> SSAValue:
        """The value that a sub-pattern matched, by its name or by the pattern object.

        Raises:
            KeyError: it took no part in the match (an option, the other alternative).
        """
        found = self.captures[key]
        return found if isinstance(found, SSAValue) else found.results[0]

    def get(self, key: str | Pattern) -> SSAValue | None:
        """As `match[key]`, or `None` when the sub-pattern took no part."""
        return self[key] if key in self.captures else None

    def op(self, key: str | Pattern) -> Operation:
        """The op that a sub-pattern matched.

        Raises:
            KeyError: it took no part in the match, or matched an argument.
        """
        found = self.captures[key]
        op = found if isinstance(found, Operation) else found.owner
        if not isinstance(op, Operation):
            raise KeyError(f"'{key}' matched an argument, not an op")
        return op

    @property
    def origin(self) -> str:
        """The ops' names for `partitioned_from_pattern`: `nn.conv2d_nn.relu_`.

        A result taken of several is named after its op, `nn.batch_norm_TupleGetItem0_`.
        """
        return "".join(f"{part}_" for op in self.ops for part in self._parts(op))

    def _parts(self, op: Operation) -> Iterator[str]:
        yield relay_name(op)
        if len(op.results) > 1:
            inside = set(self.ops)
            for result in op.results:
                whole = op is self.root and len(self.results) > 1
                taken = any(use.operation in inside for use in result.uses)
                if taken or (result in self.results and not whole):
                    yield f"TupleGetItem{result.index}"

    def constant(self, key: str | Pattern) -> ConstantOp | None:
        """The constant that a sub-pattern matched; `None` for other values or no match."""
        value = self.get(key)
        return None if value is None else as_constant(value)


Check: TypeAlias = Callable[[Match], str | None]
"""`None` accepts the match; a string is the reason why the backend refuses it."""


def checked_reason(answer: object, who: str) -> str | None:
    """What a rule or a check answered, if it is of the right type.

    Args:
        answer: what it returned.
        who: names it in the error, `the rule of backend 'npu' for add`.

    Raises:
        BackendError: the answer is neither `None` nor a string.
    """
    if answer is None or isinstance(answer, str):
        return answer
    raise BackendError(
        f"{who} returned {answer!r}; it must return None to accept, or a string that says why the"
        " backend refuses"
    )


@dataclass(frozen=True)
class CompositePattern:
    """A row of a backend's pattern table.

    ```python
    CompositePattern(
        "npu.conv2d_bias",
        is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard().named("bias")),
        lambda match: None if match.constant("bias") else "bias is not a constant",
    )
    ```
    """

    name: str
    """The composite's name: the backend's name, a dot, and a name of its own."""
    pattern: Pattern
    check: Check | None = None
    """Asked for each way the pattern matches, until it accepts one."""

    @property
    def backend(self) -> str:
        """The name of the backend that it belongs to."""
        return self.name.partition(".")[0]
