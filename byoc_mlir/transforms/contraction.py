"""Graph whose nodes merge, kept in topological order.

A merge visits only the nodes that are between the merged nodes in this order, as in Pearce and
Kelly's dynamic topological sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from byoc_mlir.transforms.union_find import UnionFind


class MergedNodes:
    """Nodes `0 … n-1`, merged step by step; one of its nodes represents each merged node."""

    def __init__(
        self,
        order: Sequence[int],
        successors: Sequence[Sequence[int]],
        predecessors: Sequence[Sequence[int]],
    ):
        self._sets = UnionFind[int]()
        self._position = [0] * len(order)
        for position, node in enumerate(order):
            self._position[node] = position
        self._successors = [set(nodes) for nodes in successors]
        self._predecessors = [set(nodes) for nodes in predecessors]

    def find(self, node: int) -> int:
        """Returns the representative of the merged node that contains `node`."""
        return self._sets.find(node)

    def span(self, one: int, two: int, foreign: Callable[[int], bool]) -> set[int] | None:
        """Returns the representatives of both nodes and of all nodes on paths between them.

        Returns `None` if such a path leads through a `foreign` (off-target) node: then both can
        never merge.
        """
        one, two = self.find(one), self.find(two)
        if self._position[one] > self._position[two]:
            one, two = two, one
        limit = self._position[two]
        off_target_before = {one: False}
        pending = [one]
        while pending:
            node = pending.pop()
            tainted = off_target_before[node] or (node != one and foreign(node))
            for after in self._after(node):
                if self._position[after] > limit or off_target_before.get(after) in (
                    True,
                    tainted,
                ):
                    continue
                if after == two and tainted:
                    return None
                off_target_before[after] = tainted
                if after != two:
                    pending.append(after)
        span = {one, two}
        pending = [two]
        while pending:
            for before in self._before(pending.pop()):
                if before in off_target_before and before not in span:
                    span.add(before)
                    pending.append(before)
        return span

    def merge(self, span: set[int]) -> int:
        """Merges a span into one node; returns its representative."""
        low = min(self._position[node] for node in span)
        high = max(self._position[node] for node in span)
        before = self._reach(span, self._before, lambda position: position > low)
        after = self._reach(span, self._after, lambda position: position < high)
        slots = sorted(self._position[node] for node in (*before, *span, *after))
        for node, slot in zip(self._sorted(before), slots, strict=False):
            self._position[node] = slot
        for node, slot in zip(self._sorted(after)[::-1], slots[::-1], strict=False):
            self._position[node] = slot
        merged = self._join(span)
        self._position[merged] = slots[len(before)]
        return merged

    def _join(self, span: set[int]) -> int:
        for edges in (self._successors, self._predecessors):
            largest = max((edges[node] for node in span), key=len)
            for node in span:
                if edges[node] is not largest:
                    largest |= edges[node]
                edges[node] = largest
        first, *others = span
        merged = first
        for node in others:
            merged = self._sets.join(merged, node)
        return merged

    def _reach(
        self,
        start: set[int],
        step: Callable[[int], Iterator[int]],
        inside: Callable[[int], bool],
    ) -> set[int]:
        found = set[int]()
        pending = list(start)
        while pending:
            for node in step(pending.pop()):
                if node not in found and node not in start and inside(self._position[node]):
                    found.add(node)
                    pending.append(node)
        return found

    def _sorted(self, nodes: set[int]) -> list[int]:
        return sorted(nodes, key=self._position.__getitem__)

    def _after(self, node: int) -> Iterator[int]:
        found = (self.find(other) for other in self._successors[node])
        return (other for other in found if other != node)

    def _before(self, node: int) -> Iterator[int]:
        found = (self.find(other) for other in self._predecessors[node])
        return (other for other in found if other != node)
