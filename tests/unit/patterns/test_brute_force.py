"""Matcher: it finds exactly the matches that trying every assignment finds."""

from __future__ import annotations

import random

import brute_force
import pytest
from small_graphs import Graph
from xdsl.ir import Block, SSAValue

from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.dialects.relay.elementwise import AddOp, MultiplyOp, SubtractOp
from byoc_mlir.dialects.relay.nn import ReluOp
from byoc_mlir.patterns import Pattern, all_matches, is_constant, is_op, is_var, wildcard


def random_graph(rng: random.Random) -> Block:
    graph = Graph()
    values: list[SSAValue] = [*graph.args]
    for _ in range(rng.randint(2, 6)):
        recent = values[-4:]
        kind = rng.randrange(6)
        if kind == 0:
            values.append(graph.constant(2.0, 2.0, 2.0, float(len(values))))
        elif kind == 1:
            values.append(graph(ReluOp, rng.choice(recent)))
        else:
            binary = (AddOp, AddOp, MultiplyOp, SubtractOp)[kind - 2]
            values.append(graph(binary, rng.choice(recent), rng.choice(recent)))
    unused = [value for value in values if not any(value.uses)]
    extra = [rng.choice(values)] if rng.random() < 0.2 else []
    graph.finish(*unused, *extra)
    return graph.block


def random_pattern(rng: random.Random, depth: int, leaves: list[Pattern]) -> Pattern:
    if depth == 0 or rng.random() < 0.2:
        if leaves and rng.random() < 0.35:
            return rng.choice(leaves)
        leaf = rng.choice((wildcard(), wildcard(), wildcard(), is_constant(), is_var()))
        if rng.random() < 0.4:
            leaf = leaf.named(rng.choice("xyz"))
        leaves.append(leaf)
        return leaf
    below = random_pattern(rng, depth - 1, leaves)
    kind = rng.randrange(8)
    if kind == 0:
        return is_op("nn.relu")(below)
    if kind == 1:
        return wildcard()(below)
    if kind == 2:
        return below.optional(is_op("nn.relu"))
    if kind == 3:
        return below | random_pattern(rng, 1, leaves)
    if kind == 4:
        return below - random_pattern(rng, depth - 1, leaves)
    if kind == 5:
        return (is_op("add") | is_op("multiply"))(below, random_pattern(rng, 1, leaves))
    return below + random_pattern(rng, depth - 1, leaves)


@pytest.mark.parametrize("first", range(0, 1200, 200))
def test_matcher_agrees_with_brute_force(first: int):
    matched = 0
    for seed in range(first, first + 200):
        rng = random.Random(seed)
        block = random_graph(rng)
        pattern = random_pattern(rng, 2, [])
        for op in list(block.ops)[:-1]:
            if isinstance(op, ConstantOp):
                continue
            expected = brute_force.solutions(pattern, op)
            found = {
                (
                    frozenset(match.ops),
                    tuple(sorted((k, match[k]) for k in match.captures if isinstance(k, str))),
                )
                for match in all_matches(pattern, op)
            }
            assert found == expected, f"seed {seed}: {pattern} at {op}"
            matched += bool(found)
    assert matched > 30
