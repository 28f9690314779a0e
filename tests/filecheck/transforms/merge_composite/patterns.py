"""Backend whose pattern table has one row, on separate ops, for each rule of matching."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.backends import Backend, register_backend
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.patterns import (
    CompositePattern,
    Match,
    Pattern,
    dominates,
    has_shape,
    is_constant,
    is_op,
    is_tuple,
    wildcard,
)


def op(name: str, *operands: Pattern) -> Pattern:
    return is_op(name)(*(operands or (wildcard(),)))


def not_rounded(match: Match) -> str | None:
    return "ends in round" if relay_name(match.root) == "round" else None


def not_returned(match: Match) -> str | None:
    users = [use.operation.name for value in match.results for use in value.uses]
    return "it is returned" if "func.return" in users else None


def vectors_of_four(match: Match) -> str | None:
    types = {str(value.type) for value in (*match.inputs, *match.results)}
    return None if types == {"tensor<4xf32>"} else f"types {sorted(types)}"


@register_backend
class Rules(Backend):
    name = "rules"

    def patterns(self) -> Sequence[CompositePattern]:
        square, shared, whole = wildcard(), wildcard(), op("cos")
        dense = op("nn.dense", wildcard(), wildcard())
        path = op("nn.relu")
        return [
            CompositePattern("rules.square", square * square),
            CompositePattern(
                "rules.backtrack", (shared | op("nn.relu", shared)) - op("tanh", shared)
            ),
            CompositePattern(
                "rules.optional", op("minimum", wildcard().optional(is_op("nn.relu")), wildcard())
            ),
            CompositePattern("rules.commutes", op("maximum", op("exp"), wildcard())),
            CompositePattern("rules.in_order", op("power", op("exp"), wildcard())),
            CompositePattern("rules.quotient", (wildcard() * wildcard()) / wildcard()),
            CompositePattern(
                "rules.softmax_relus", dominates(op("nn.softmax"), path, wildcard() + wildcard())
            ),
            CompositePattern("rules.abs_abs", op("abs", op("abs"))),
            CompositePattern("rules.parameters", (wildcard() - wildcard()) * wildcard()),
            CompositePattern("rules.ceil_sum", op("sqrt", op("ceil")) + wildcard()),
            CompositePattern("rules.sigmoid_sum", op("sigmoid") + wildcard()),
            CompositePattern("rules.cos_sum", whole + whole),
            CompositePattern("rules.dense_bias_sum", dense + wildcard() + wildcard()),
            CompositePattern("rules.floor", op("floor").optional(is_op("round")), not_rounded),
            CompositePattern("rules.rsqrts", op("rsqrt", op("rsqrt")), not_returned),
            CompositePattern("rules.typed", op("negative", has_shape((4,))), vectors_of_four),
            CompositePattern("rules.embedded", op("log", is_constant())),
            CompositePattern(
                "rules.joined", is_op("concatenate")(is_tuple([op("erf"), wildcard()]))
            ),
        ]

    def codegen(self, region, context):
        raise NotImplementedError  # models are partitioned here, not compiled
