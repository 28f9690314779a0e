"""How often work must change hands before a node can run, seen from one backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from byoc_mlir.transforms.region_graph import RegionGraph


@dataclass(frozen=True)
class ForeignLevels:
    """For each node the largest number of foreign nodes on a path to it, and one such path.

    Foreign is what is neither of the backend nor a constant. The paths form a forest.
    """

    level: list[int]
    _enter: list[int]
    _leave: list[int]

    @staticmethod
    def of(graph: RegionGraph, compiler: str) -> ForeignLevels:
        """The levels of a graph's nodes, seen from backend `compiler`."""
        level = [0] * len(graph.nodes)
        children: list[list[int]] = [[] for _ in graph.nodes]
        roots: list[int] = []
        for node in graph.order():
            parent = None
            for source in graph.predecessors[node]:
                before = graph.nodes[source]
                if before.is_constant:
                    continue
                reached = level[source] + (before.compiler != compiler)
                if parent is None or reached > level[node]:
                    parent, level[node] = source, reached
            (roots if parent is None else children[parent]).append(node)
        return ForeignLevels(level, *_tour(roots, children))

    def separated(self, one: int, two: int) -> bool:
        """Whether something foreign lies on the recorded path between two nodes of the backend.

        `True` proves that they cannot merge; `False` says nothing, unless the levels are equal:
        then nothing foreign is between them on any path.
        """
        if self.level[one] > self.level[two]:
            one, two = two, one
        above = self._enter[one] <= self._enter[two] <= self._leave[one]
        return above and self.level[one] < self.level[two]

    def unseparated_pairs(self, nodes: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Every two of `nodes` for which `separated` is false, in time linear in their number."""
        above: list[int] = []  # on the recorded path to the node at hand; levels only grow on it
        aside: list[int] = []
        for node in sorted(nodes, key=self._enter.__getitem__):
            while above and self._leave[above[-1]] < self._enter[node]:
                aside.append(above.pop())
            yield from ((other, node) for other in aside)
            for other in reversed(above):
                if self.level[other] < self.level[node]:
                    break
                yield other, node
            above.append(node)


def _tour(roots: list[int], children: list[list[int]]) -> tuple[list[int], list[int]]:
    """When a walk of the forest enters each node, and the last entry while it is below it."""
    enter, leave = [0] * len(children), [0] * len(children)
    clock = 0
    pending = [(root, False) for root in roots]
    while pending:
        node, done = pending.pop()
        if done:
            leave[node] = clock
            continue
        clock += 1
        enter[node] = clock
        pending.append((node, True))
        pending.extend((child, False) for child in children[node])
    return enter, leave
