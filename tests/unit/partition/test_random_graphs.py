"""The partitioner on six hundred random graphs: all sizes, targets and constants combined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
import random_graphs as graphs
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.backends import Backend, register_backend
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.patterns import CompositePattern, is_op, wildcard
from byoc_mlir.transforms.inline_partitions import InlinePartitions
from byoc_mlir.transforms.merge_compiler_regions import canonical_keys
from byoc_mlir.transforms.partition_for import PartitionFor

CHUNK = 100


def accept(names: str):
    return {name: lambda op: None for name in names.split()}


class NoCode(Backend):
    def codegen(self, region, context):
        raise NotImplementedError  # models are partitioned here, not compiled


@register_backend
class RandomA(NoCode):
    name = "random_a"

    def op_rules(self):
        return accept("nn.relu add tanh concatenate split")

    def patterns(self) -> Sequence[CompositePattern]:
        product = is_op("multiply")(wildcard(), wildcard())
        return [
            CompositePattern("random_a.add_relu", is_op("nn.relu")(wildcard() + wildcard())),
            CompositePattern(
                "random_a.product_add",
                (product + wildcard().named("other")).optional(is_op("tanh")),
                check=lambda match: (
                    "the addend is an argument" if match["other"].owner is None else None
                ),
            ),
        ]


@register_backend
class RandomB(NoCode):
    name = "random_b"

    def op_rules(self):
        return accept("sigmoid multiply tanh add")

    def patterns(self) -> Sequence[CompositePattern]:
        x = wildcard()
        return [CompositePattern("random_b.swish", x * is_op("sigmoid")(x))]


@register_backend
class RandomC(NoCode):
    name = "random_c"

    def op_rules(self):
        return accept("exp subtract concatenate")


ALL = ("random_a", "random_b", "random_c")


def partitioned(
    module: ModuleOp, targets: tuple[str, ...], bind_constants: bool = True
) -> ModuleOp:
    module = module.clone()
    PartitionFor(targets, bind_constants).apply(Context(), module)
    module.verify()
    return module


def cases(first: int):
    for seed in range(first, first + CHUNK):
        module = graphs.random_module(seed, size=4 + seed % 27)
        yield seed, module, ALL[: 1 + seed % 3] if seed % 2 else ALL[::-1][: 1 + seed % 3]


@pytest.mark.parametrize("first", range(0, 500, CHUNK))
def test_partitioning_is_sound_maximal_and_can_be_undone(first: int):
    offloaded = 0
    for seed, module, targets in cases(first):
        evaluator, held = graphs.Evaluator(), graphs.nodes_held(module)
        assert set(held.values()) <= {1}
        expected = evaluator.results(module)

        after = partitioned(module, targets, bind_constants=seed % 5 != 0)
        assert evaluator.results(after) == expected, seed
        assert graphs.nodes_held(after) == held, seed
        assert graphs.mergeable_pairs(after) == [], seed
        offloaded += len(graphs.region_nodes(after))

        InlinePartitions().apply(Context(), after)
        after.verify()
        assert evaluator.results(after) == expected, seed
        assert graphs.nodes_held(after) == held, seed
        assert list(graphs.functions(after)) == ["main"]
    assert offloaded > CHUNK


@pytest.mark.parametrize("first", range(2000, 2100, CHUNK))
def test_regions_do_not_depend_on_the_order_of_ops(first: int):
    for seed, module, targets in cases(first):
        colours = _colours(module)
        one = _coloured(partitioned(module, targets), colours)
        two = _coloured(partitioned(graphs.shuffled(module, seed), targets), colours)
        assert one == two, seed


def _colours(module: ModuleOp) -> dict[str, bytes]:
    keys = canonical_keys(graphs.main_block(module))
    return {name: key for op, key in keys.items() for name in node_names(op)}


def _coloured(
    module: ModuleOp, colours: dict[str, bytes]
) -> Counter[tuple[str, tuple[bytes, ...]]]:
    return Counter(
        (compiler, tuple(sorted(colours[name] for name in names)))
        for compiler, names in graphs.region_nodes(module)
    )
