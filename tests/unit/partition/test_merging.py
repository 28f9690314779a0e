"""Merging of regions: cases that are rare in random graphs, and growth of the work."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from types import FrameType

import pytest
import random_graphs as graphs
from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from byoc_mlir.backends import Backend, register_backend
from byoc_mlir.dialects.relay.elementwise import AddOp, BroadcastOp, ExpOp, SigmoidOp, TanhOp
from byoc_mlir.dialects.relay.nn import ReluOp
from byoc_mlir.dialects.relay.transform import ConcatenateOp
from byoc_mlir.limits import Limits, limited
from byoc_mlir.transforms.annotate_target import AnnotateTarget
from byoc_mlir.transforms.annotated_regions import find_regions
from byoc_mlir.transforms.merge_compiler_regions import OffTargetDepths
from byoc_mlir.transforms.partition_for import PartitionFor
from byoc_mlir.transforms.region_graph import build_graph


class NoCode(Backend):
    def codegen(self, region, context):
        raise NotImplementedError  # models are partitioned here, not compiled


@register_backend
class MergingA(NoCode):
    name = "merging_a"

    def op_rules(self):
        return {name: lambda op: None for name in ("nn.relu", "tanh", "add", "concatenate")}


@register_backend
class MergingB(NoCode):
    name = "merging_b"

    def op_rules(self):
        return {"sigmoid": lambda op: None}


class Builder:
    """Builder of a function on vectors of one element."""

    def __init__(self, arguments: int = 1):
        self.block = Block(arg_types=[graphs.ONE] * arguments)

    def __call__(self, kind: type[Operation], *operands: SSAValue) -> SSAValue:
        op = kind(*operands)  # pyright: ignore
        self.block.add_op(op)
        return op.results[0]

    def module(self, *results: SSAValue) -> ModuleOp:
        self.block.add_op(ReturnOp(*results))
        types = [value.type for value in self.block.args], [value.type for value in results]
        return ModuleOp([FuncOp("main", FunctionType.from_lists(*types), Region(self.block))])


def regions_of(module: ModuleOp) -> list[str]:
    PartitionFor(("merging_a", "merging_b")).apply(Context(), module)
    module.verify()
    assert graphs.mergeable_pairs(module) == []
    return [compiler for compiler, _ in graphs.region_nodes(module)]


def test_a_pair_takes_all_between_along():
    b = Builder(2)
    x, y = b.block.args
    first = b(ReluOp, x)
    side, values = y, first
    for _ in range(3):
        side = b(ExpOp, side)
        values = b(AddOp, values, side)
    joined = ConcatenateOp([values, b(ExpOp, side), first], axis=0)
    b.block.add_op(joined)
    assert regions_of(b.module(joined.output)) == ["merging_a"]


def test_equal_choices_are_made_the_same_way():
    # relu and tanh share x; either can be in one region with the add, and they with each other
    b = Builder()
    (x,) = b.block.args
    one = b(ReluOp, x)
    two = b(TanhOp, x)
    out = b(AddOp, b(ExpOp, one), two)
    assert regions_of(b.module(out)) == ["merging_a", "merging_a"]


def chain(count: int, kinds: Sequence[type[Operation]]) -> ModuleOp:
    b = Builder()
    value = b.block.args[0]
    for number in range(count):
        kind = kinds[number % len(kinds)]
        operands = [value, b.block.args[0]] if issubclass(kind, BroadcastOp) else [value]
        value = b(kind, *operands)
    return b.module(value)


def densely_connected(layers: Sequence[int]) -> ModuleOp:
    """Returns the shape of DenseNet: each layer reads the results of all earlier layers of its
    block.
    """
    b = Builder()
    value: SSAValue = b.block.args[0]
    for count in layers:
        features: list[SSAValue] = [value]
        for _ in range(count):
            joined = ConcatenateOp(features, axis=0)
            b.block.add_op(joined)
            for kind in (ReluOp, TanhOp, ReluOp, TanhOp, ReluOp):
                value = b(kind, joined.output if kind is ReluOp and value in features else value)
            features.append(value)
    return b.module(value)


@pytest.mark.parametrize(
    ("make", "regions"),
    [
        (lambda n: chain(n, [ReluOp, TanhOp]), lambda n: 1),
        (lambda n: chain(n, [ReluOp, TanhOp, ExpOp]), lambda n: -(-n // 3)),
        (lambda n: chain(n, [ReluOp, SigmoidOp]), lambda n: n),
        # one input that every region shares, with the host between any two
        (lambda n: chain(n, [AddOp, ReluOp, ExpOp]), lambda n: -(-n // 3)),
    ],
    ids=["one region", "host between", "two backends", "shared input"],
)
def test_work_grows_linearly(make, regions):
    def calls(count: int) -> int:
        module = make(count)
        made = calls_made(lambda: PartitionFor(("merging_a", "merging_b")).apply(Context(), module))
        assert len(graphs.region_nodes(module)) == regions(count)
        return made

    calls(100)  # fills caches
    assert calls(800) < 4.1 * calls(200)


def test_a_densenet_is_one_region():
    def calls(layers: tuple[int, ...]) -> int:
        module = densely_connected(layers)
        made = calls_made(lambda: PartitionFor(("merging_a",)).apply(Context(), module))
        assert len(graphs.region_nodes(module)) == 1
        return made

    with limited(Limits(tensor_bytes=1 << 128)):  # sizes double from layer to layer
        calls((6,))
        assert calls((24, 24, 24, 24)) < 4.5 * calls((24,))


def test_pairs_on_one_path_are_not_looked_at():
    # every node after all of those before it, something foreign between any two
    levels = OffTargetDepths(list(range(1000)), list(range(1000)), [999] * 1000)
    pairs: list[tuple[int, int]] = []
    assert calls_made(lambda: pairs.extend(levels.unseparated_pairs(range(1000)))) < 10 * 1000
    assert pairs == []


def test_unseparated_pairs_are_those_that_are_not_separated():
    rng = random.Random(0)
    for _ in range(200):
        module = graphs.random_module(rng.randrange(10**6), size=20)
        AnnotateTarget(("merging_a", "merging_b")).apply(Context(), module)
        block = graphs.main_block(module)
        graph = build_graph(block, find_regions(block), ())
        levels = OffTargetDepths.of(graph, "merging_a")
        nodes = [n for n, one in enumerate(graph.nodes) if one.compiler == "merging_a"]
        expected = {pair for pair in combinations(nodes, 2) if not levels.separated(*pair)}
        found = [(min(pair), max(pair)) for pair in levels.unseparated_pairs(nodes)]
        assert len(found) == len(set(found))
        assert set(found) == expected


def calls_made(run: Callable[[], None]) -> int:
    """Returns the number of function calls, which stands for the time on an idle machine."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count
