"""Dependency graph whose nodes are regions and host ops."""

from __future__ import annotations

import heapq
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.patterns.subjects import describe
from byoc_mlir.transforms.annotated_regions import AnnotatedRegion, find_regions, unannotated
from byoc_mlir.transforms.blocks import (
    has_effects,
    is_constant,
    is_node,
    partitioned_blocks,
    region_symbols,
    values_used,
)


@dataclass(frozen=True)
class RegionNode:
    """Node of the graph: a region, a host op, or a constant."""

    ops: tuple[Operation, ...]
    compiler: str | None
    """Backend of a region; `None` for a host op or a constant."""

    @property
    def is_constant(self) -> bool:
        """True if the node is a constant; each user gets a copy, so it separates no regions."""
        return self.compiler is None and is_constant(self.ops[0])


@dataclass(frozen=True)
class RegionGraph:
    """Nodes of one block, without annotations and the terminator, and the edges between them."""

    block: Block
    nodes: Sequence[RegionNode]
    successors: Sequence[Sequence[int]]
    predecessors: Sequence[Sequence[int]]
    readers: Mapping[SSAValue, Sequence[int]]
    """Regions that a value enters, for non-constant values that enter several regions."""

    def order(self) -> list[int]:
        """Returns the nodes in an executable order, as close to program order as possible.

        Raises:
            PassFailedException: there is no such order, since a region depends on its own results.
        """
        position = {op: place for place, op in enumerate(self.block.ops)}
        keys = [max(position[op] for op in node.ops) for node in self.nodes]
        missing = [len(sources) for sources in self.predecessors]
        ready = [(keys[node], node) for node, count in enumerate(missing) if not count]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            _, node = heapq.heappop(ready)
            order.append(node)
            for successor in self.successors[node]:
                missing[successor] -= 1
                if not missing[successor]:
                    heapq.heappush(ready, (keys[successor], successor))
        if len(order) < len(self.nodes):
            self._fail_on_cycle(set(range(len(self.nodes))) - set(order))
        return order

    def _fail_on_cycle(self, stuck: set[int]) -> NoReturn:
        node = min(stuck)
        path: list[int] = []
        while node not in path:
            path.append(node)
            node = next(source for source in self.predecessors[node] if source in stuck)
        cycle = path[path.index(node) :][::-1]
        first = min(node for node in cycle if self.nodes[node].compiler is not None)
        start = cycle.index(first)
        region, *others = (self.nodes[node] for node in cycle[start:] + cycle[:start])
        through = ", ".join(describe(one.ops[0]) for one in others)
        reason = (
            f"the region of '{region.compiler}' with {describe(region.ops[0])} depends on its own"
            f" results, through {through}; split it so that it can run as a whole"
        )
        region.ops[0].emit_error(reason, PassFailedException(reason))


def check_annotations(module: ModuleOp) -> None:
    """Checks the annotations of a module.

    Raises:
        PassFailedException: the annotations are inconsistent; the message says where and why.
    """
    outlined = region_symbols(module)
    for block in partitioned_blocks(module):
        if regions := find_regions(block):
            build_graph(block, regions, outlined).order()


def build_graph(
    block: Block, regions: Sequence[AnnotatedRegion], outlined: Container[str]
) -> RegionGraph:
    """Builds the graph of an annotated block.

    Args:
        block: the block; the graph skips annotations between a value and its users.
        regions: the block's regions.
        outlined: symbols of outlined regions, whose calls have no effects.
    """
    nodes = _nodes(block, regions)
    node_of = {op: index for index, node in enumerate(nodes) for op in node.ops}
    sources: list[dict[int, None]] = [{} for _ in nodes]
    readers: dict[SSAValue, dict[int, None]] = {}
    last_effect: int | None = None
    for index, node in enumerate(nodes):
        for op in node.ops:
            for value in values_used(op):
                made = unannotated(value)
                source = node_of.get(made.owner) if isinstance(made.owner, Operation) else None
                if source == index:
                    continue
                if source is not None:
                    sources[index][source] = None
                if node.compiler and not (source is not None and nodes[source].is_constant):
                    readers.setdefault(made, {})[index] = None
        if node.compiler is None and not node.is_constant and has_effects(node.ops[0], outlined):
            if last_effect is not None:
                sources[index][last_effect] = None
            last_effect = index
    successors: list[list[int]] = [[] for _ in nodes]
    for index, before in enumerate(sources):
        for source in before:
            successors[source].append(index)
    shared = {value: list(found) for value, found in readers.items() if len(found) > 1}
    return RegionGraph(block, nodes, successors, [list(before) for before in sources], shared)


def _nodes(block: Block, regions: Sequence[AnnotatedRegion]) -> list[RegionNode]:
    region_of = {op: region for region in regions for op in region.ops}
    nodes: list[RegionNode] = []
    for op in block.ops:
        region = region_of.get(op)
        if region is None:
            if is_node(op) or is_constant(op):
                nodes.append(RegionNode((op,), None))
        elif op is region.ops[0]:
            nodes.append(RegionNode(region.ops, region.compiler))
    return nodes
