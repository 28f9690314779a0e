"""Backends without code generators, for the partitioner's tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from byoc_mlir.backends import Backend, CodegenContext, Profitability, Rule, register_backend
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.window import Conv2DOp
from byoc_mlir.patterns import CompositePattern, Match, is_constant, is_op, wildcard
from byoc_mlir.patterns import is_tuple_get_item as item


def accept(op: Operation) -> None:
    """Accepts every op."""


def ungrouped(op: Operation) -> str | None:
    assert isinstance(op, Conv2DOp)
    groups = op.groups.value.data
    return None if groups == 1 else f"{groups} groups"


def constant_bias(match: Match) -> str | None:
    return None if match.constant("bias") else "bias is not a constant"


class NoCode(Backend):
    def codegen(self, region, context):
        raise NotImplementedError  # models are partitioned here, not compiled


@register_backend
class Alpha(NoCode):
    name = "alpha"

    def op_rules(self) -> Mapping[str, Rule]:
        rules: dict[str, Rule] = dict.fromkeys(
            ("nn.relu", "nn.bias_add", "add", "tanh", "concatenate", "split"), accept
        )
        return {**rules, "nn.conv2d": ungrouped}

    def patterns(self) -> Sequence[CompositePattern]:
        conv = is_op("nn.conv2d")(wildcard(), wildcard())
        biased = is_op("nn.bias_add")(conv, wildcard().named("bias"))
        statistics = [wildcard() for _ in range(4)]
        normed = item(is_op("nn.batch_norm")(conv, *statistics), 0)
        return [
            CompositePattern(
                "alpha.conv2d_bias", biased.optional(is_op("nn.relu")), check=constant_bias
            ),
            CompositePattern("alpha.conv2d_bn_relu", is_op("nn.relu")(normed)),
            CompositePattern(
                "alpha.scaled", is_op("multiply")(is_op("tanh")(wildcard()), is_constant())
            ),
            CompositePattern("alpha.conv2d_any", wildcard()(conv)),
        ]


@register_backend
class Beta(NoCode):
    name = "beta"

    def op_rules(self) -> Mapping[str, Rule]:
        return dict.fromkeys(("sigmoid", "multiply", "add"), accept)

    def estimated_milliseconds(self, region: FuncOp, context: CodegenContext) -> float:
        return 2.5

    def patterns(self) -> Sequence[CompositePattern]:
        x = wildcard()
        return [CompositePattern("beta.swish", x * is_op("sigmoid")(x))]


def _of_windows(op: Operation) -> str | None:
    return (
        "windows are faster"
        if isinstance(op, Conv2DOp) and shape_of(op.weight)[2:] != (1, 1)
        else None
    )


@register_backend
class Gamma(NoCode):
    """Backend with instructions for `bf16`."""

    name = "gamma"

    def op_rules(self) -> Mapping[str, Rule]:
        return {"nn.conv2d": accept}

    def profitability(self, element_type: str) -> Profitability:
        return Profitability(
            frozenset({"nn.conv2d"}),
            faster_in_f32=_of_windows,
            following=frozenset({"gamma.batch_norm_relu"}),
        )

    def patterns(self) -> Sequence[CompositePattern]:
        biased = is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard())
        norm = is_op("nn.batch_norm")(*[wildcard() for _ in range(5)])
        return [
            CompositePattern("gamma.conv2d_bias_relu", is_op("nn.relu")(biased)),
            CompositePattern("gamma.batch_norm_relu", is_op("nn.relu")(item(norm, 0))),
        ]
