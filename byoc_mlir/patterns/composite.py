"""Rows of a pattern table, and their matches."""

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
    """Part of a graph that a pattern matched; a check accepts or refuses it.

    `match["bias"]` is the value that the sub-pattern named `bias` matched.
    """

    root: Operation
    """Op that depends on all other ops of the match."""
    results: tuple[SSAValue, ...]
    """Values that leave the match: all results of the root, or the one result that was matched."""
    ops: tuple[Operation, ...]
    """Ops of the match, operands before users, the root last."""
    inputs: tuple[SSAValue, ...]
    """Values from outside, in the order of the composite's parameters."""
    constants: tuple[SSAValue, ...]
    """Constants that become part of the body."""
    captures: Mapping[str | Pattern, Subject] = field(repr=False)
    """Values or ops that named sub-patterns, and pattern objects, matched."""

    def __contains__(self, key: str | Pattern) -> bool:
        return key in self.captures

    def __getitem__(self, key: str | Pattern) -> SSAValue:
        """Returns the value that a sub-pattern matched, by its name or by the pattern object.

        Raises:
            KeyError: the sub-pattern took no part in the match (an option, the other alternative).
        """
        found = self.captures[key]
        return found if isinstance(found, SSAValue) else found.results[0]

    def get(self, key: str | Pattern) -> SSAValue | None:
        """Returns the value that a sub-pattern matched; `None` if the sub-pattern took no part."""
        return self[key] if key in self.captures else None

    def op(self, key: str | Pattern) -> Operation:
        """Returns the op that a sub-pattern matched.

        Raises:
            KeyError: the sub-pattern took no part in the match, or matched an argument.
        """
        found = self.captures[key]
        op = found if isinstance(found, Operation) else found.owner
        if not isinstance(op, Operation):
            raise KeyError(f"'{key}' matched an argument, not an op")
        return op

    @property
    def origin(self) -> str:
        """Returns the ops' names, joined as in `partitioned_from_pattern`: `nn.conv2d_nn.relu_`.

        One result of several is named after its op, `nn.batch_norm_TupleGetItem0_`.
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
        """Returns the constant that a sub-pattern matched; `None` for other values or no match."""
        value = self.get(key)
        return None if value is None else as_constant(value)


Check: TypeAlias = Callable[[Match], str | None]
"""Function that returns `None` to accept a match, or the reason why the backend refuses it."""


def checked_reason(answer: object, who: str) -> str | None:
    """Returns the answer of a rule or check, after a test of its type.

    Args:
        answer: return value of the rule or check.
        who: name of the rule or check in the error, such as `the rule of backend 'npu' for add`.

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
    """Row of a backend's pattern table.

    ```python
    CompositePattern(
        "npu.conv2d_bias",
        is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard().named("bias")),
        lambda match: None if match.constant("bias") else "bias is not a constant",
    )
    ```
    """

    name: str
    """Name of the composite: the backend's name, a dot, and the pattern's name."""
    pattern: Pattern
    check: Check | None = None
    """Check that is called for each way the pattern matches, until it accepts one."""

    @property
    def backend(self) -> str:
        """Returns the name of the backend that the pattern belongs to."""
        return self.name.partition(".")[0]
