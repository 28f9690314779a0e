"""Values of one element whose rank, 0 or 1, depends on the branch that ran.

Exporters of Paddle give a scalar in one branch and a vector of one element in the other, which ONNX
allows. The importer represents both as a vector, and accepts only users that do not depend on the
rank.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from byoc_mlir.frontend.graphs import standard_name
from byoc_mlir.frontend.value import Value, ValueNeeded

_INDIFFERENT = frozenset(
    {
        "Abs",
        "Add",
        "And",
        "Cast",
        "Div",
        "Equal",
        "Greater",
        "GreaterOrEqual",
        "Identity",
        "If",
        "Less",
        "LessOrEqual",
        "Max",
        "Min",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "Sub",
        "Where",
        "Xor",
    }
)
"""Ops whose result has the highest rank of their operands, and `If`, which reads a condition."""


class EitherRank(Value):
    """Value of one element and unknown rank, stored as a vector."""

    def renamed(self, name: str, inputs: frozenset[str]) -> Value:
        return either_rank(super().renamed(name, inputs))


def either_rank(value: Value) -> Value:
    """Returns a vector of one element as a value whose rank is 0 or 1."""
    content = value.known if value.ssa is None else value.ssa
    assert content is not None
    return EitherRank(value.name, content, value.location, value.inputs, value.formula)


def differ_in_rank_alone(one: Value, other: Value) -> bool:
    """True if one of two values is a scalar and the other a vector of one element."""
    return one.element_type == other.element_type and {one.sizes, other.sizes} == {(), (1,)}


def check_rank_does_not_show(node: onnx.NodeProto, inputs: Sequence[Value | None]) -> None:
    """Checks that a node computes the same results from operands of rank 0 and of rank 1.

    Raises:
        ValueNeeded: the node's result may depend on the rank.
    """
    if standard_name(node.domain) or node.op_type not in _INDIFFERENT:
        for value in inputs:
            refuse_either_rank(value)


def refuse_either_rank(value: Value | None) -> None:
    """Checks that a value is no `EitherRank`.

    Raises:
        ValueNeeded: the value's rank may be 0 or 1.
    """
    if isinstance(value, EitherRank):
        raise ValueNeeded(
            f"the rank of '{value.name}' is 0 or 1, and which branch decides is computed at run"
            " time; accepted is one rank in both branches",
            value.inputs,
        )


def with_their_rank(
    inputs: Sequence[Value | None], outputs: Sequence[Value | None]
) -> Sequence[Value | None]:
    """Returns the outputs; they are `EitherRank` if an operand is, and all other operands are
    scalars.
    """
    given = [value for value in inputs if value is not None]
    if not any(isinstance(value, EitherRank) for value in given):
        return outputs
    if any(value.rank > 0 and not isinstance(value, EitherRank) for value in given):
        return outputs
    return [None if value is None else either_rank(value) for value in outputs]
