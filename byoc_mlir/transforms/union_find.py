"""Disjoint sets, which can be joined."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


class UnionFind(Generic[Item]):
    """Disjoint sets of hashable items; each item is initially in its own set."""

    def __init__(self) -> None:
        self._parent: dict[Item, Item] = {}
        self._size: dict[Item, int] = {}

    def find(self, item: Item) -> Item:
        """Returns the representative of the set with `item`."""
        root = item
        while (parent := self._parent.get(root, root)) is not root:
            root = parent
        while (parent := self._parent.get(item, item)) is not root:
            self._parent[item] = root
            item = parent
        return root

    def join(self, one: Item, two: Item) -> Item:
        """Joins the sets of both items; returns the new representative."""
        one, two = self.find(one), self.find(two)
        if one is two:
            return one
        sizes = self._size.get(one, 1), self._size.get(two, 1)
        if sizes[0] < sizes[1]:
            one, two = two, one
        self._parent[two] = one
        self._size[one] = sum(sizes)
        return one
