"""Conversion of ONNX's decision trees to the tables of `relay.ml.tree_ensemble`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.frontend.value import Array, NodeRefused

Item: TypeAlias = Hashable
"""Key of a tree's node, or of one comparison of a node that needs several."""


@dataclass(frozen=True)
class TreeBranch:
    """Comparison in a tree: continues at `right` if the feature is at most `threshold`, else at
    `left`.
    """

    feature: int
    nan_is_low: bool
    """True if a feature that is NaN goes right; otherwise it goes left."""
    threshold: float
    left: Item
    right: Item


@dataclass(frozen=True)
class TreeNode:
    """Node as ONNX describes it; `mode` is ONNX's mode without the prefix `BRANCH_`."""

    mode: str
    feature: int
    value: float
    yes: Item
    no: Item
    missing_is_yes: bool = False
    members: tuple[float, ...] = ()
    """Set of values, for the mode MEMBER."""


@dataclass(frozen=True)
class TreeTables:
    """Operands of `relay.ml.tree_ensemble`.

    If `needs_low`, the features must be followed by a copy in which NaN is the lowest value.
    """

    roots: Array
    depths: Array
    lefts: Array
    features: Array
    thresholds: Array
    leaves: Array
    needs_low: bool


class Forest:
    """Trees over `nodes`; names that are in `leaves` are leaves."""

    def __init__(
        self,
        nodes: Mapping[Item, TreeNode],
        leaves: Mapping[Item, int],
        features: int,
        dtype: np.dtype[Any],
    ):
        self._nodes = nodes
        self._leaves = leaves
        self._feature_count = features
        self._type = dtype.type
        self._parts: dict[Item, TreeBranch | int] = {}
        """Comparison of each node, or number of each leaf."""
        self._heights: dict[Item, int] = {}
        self._pairs: dict[Item, int] = {}
        self._slots: list[Item] = []

    def tables(self, roots: Sequence[Item]) -> TreeTables:
        """Returns the tables of the trees from `roots`, ordered by depth.

        Raises:
            NodeRefused: the mode of a node is unknown.
            VerifyException: a node or feature does not exist, or nodes form a cycle.
        """
        ordered = sorted(roots, key=self._height)
        starts = [self._place(root) for root in ordered]
        count = len(self._slots)
        lefts, leaves = np.arange(count, dtype=np.int32), np.zeros(count, np.int32)
        features, thresholds = np.zeros(count, np.int32), np.full(count, np.nan)
        needs_low = False
        for slot, item in enumerate(self._slots):
            part = self._parts[item]
            if isinstance(part, int):
                leaves[slot] = part
                continue
            needs_low |= part.nan_is_low
            features[slot] = part.feature + part.nan_is_low * self._feature_count
            thresholds[slot] = part.threshold
            lefts[slot] = self._pairs[item]
        return TreeTables(
            np.array(starts, np.int32),
            np.array([self._heights[root] for root in ordered], np.int32),
            lefts,
            features,
            thresholds.astype(self._type),
            leaves,
            needs_low,
        )

    def _place(self, root: Item) -> int:
        """Assigns slots to a tree's nodes; returns the slot of its root."""
        start = place = len(self._slots)
        self._slots.append(root)
        while place < len(self._slots):
            item = self._slots[place]
            part = self._parts[item]
            if isinstance(part, TreeBranch) and item not in self._pairs:
                self._pairs[item] = len(self._slots)
                self._slots += [part.left, part.right]
            place += 1
        return start

    def _height(self, root: Item) -> int:
        """Returns the length of the longest path from a node to a leaf."""
        stack, above = [root], set[Item]()
        while stack:
            item = stack[-1]
            part = self._part(item)
            below = [part.left, part.right] if isinstance(part, TreeBranch) else []
            missing = [each for each in below if each not in self._heights]
            if not missing:
                self._heights[item] = 1 + max(self._heights[each] for each in below) if below else 0
                above.discard(item)
                stack.pop()
                continue
            above.add(item)
            if not above.isdisjoint(missing):
                raise VerifyException("a node of a tree is reached from itself")
            stack += missing
        return self._heights[root]

    def _part(self, item: Item) -> TreeBranch | int:
        if item not in self._parts:
            self._parts[item] = self._resolved(item)
        return self._parts[item]

    def _resolved(self, item: Item) -> TreeBranch | int:
        if item in self._leaves:
            return self._leaves[item]
        if item in self._nodes:
            return self._branch(item, self._nodes[item])
        if isinstance(item, _ExtraBranch):
            return item.branch
        raise VerifyException(f"a tree has no node {item}")

    def _branch(self, item: Item, node: TreeNode) -> TreeBranch:
        if not 0 <= node.feature < self._feature_count:
            raise VerifyException(
                f"a tree reads feature {node.feature}, the input has {self._feature_count}"
            )
        yes, no, missing = node.yes, node.no, node.missing_is_yes
        match node.mode:
            case "LEQ":
                return TreeBranch(node.feature, missing, self._exact(node.value), no, yes)
            case "LT":
                return TreeBranch(node.feature, missing, self._before(node.value), no, yes)
            case "GT":
                return TreeBranch(node.feature, not missing, self._exact(node.value), yes, no)
            case "GTE":
                return TreeBranch(node.feature, not missing, self._before(node.value), yes, no)
            case "EQ":
                return self._equal(item, node.feature, node.value, yes, no, missing=missing)
            case "NEQ":
                return self._equal(item, node.feature, node.value, no, yes, missing=False)
            case "MEMBER":
                return self._member(item, node)
            case mode:
                raise NodeRefused(
                    f"a node's mode is {mode}, accepted are LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF"
                )

    def _equal(
        self, item: Item, feature: int, value: float, yes: Item, no: Item, *, missing: bool
    ) -> TreeBranch:
        """Returns the branches for `x == value`: `x <= value`, then `x > (largest float below
        value)`.
        """
        above = _ExtraBranch(item, TreeBranch(feature, False, self._before(value), yes, no))
        return TreeBranch(feature, missing, self._exact(value), no, above)

    def _member(self, item: Item, node: TreeNode) -> TreeBranch:
        rest: Item = node.no
        for number, value in enumerate(reversed(node.members[1:])):
            step = self._equal((item, number), node.feature, value, node.yes, rest, missing=False)
            rest = _ExtraBranch((item, number, "member"), step)
        first = node.members[0] if node.members else float("nan")
        return self._equal(item, node.feature, first, node.yes, rest, missing=node.missing_is_yes)

    def _exact(self, value: float) -> float:
        """Rounds a threshold to the data's type."""
        return float(self._type(value))

    def _before(self, value: float) -> float:
        """Returns the largest float below a threshold; NaN if there is none."""
        exact = self._type(value)
        if np.isneginf(exact):
            return float("nan")
        return float(np.nextafter(exact, self._type(-np.inf)))


@dataclass(frozen=True)
class _ExtraBranch:
    """Additional branch that the comparison of a node requires."""

    of: Item
    branch: TreeBranch


def leaf_tables(
    entries: Mapping[int, Sequence[tuple[int, float]]],
    leaves: int,
    targets: int,
    aggregate: str,
    dtype: np.dtype[Any],
) -> tuple[Array, Array]:
    """Returns the tables `firsts` and `weights` of the leaves.

    Args:
        entries: pairs of target and weight, for each leaf.

    Raises:
        VerifyException: the number of a target is out of range.
    """
    nothing = {"min": np.inf, "max": -np.inf}.get(aggregate, 0.0)
    together = {"min": np.minimum, "max": np.maximum}.get(aggregate, np.add)
    is_single = all(len(pairs) <= 1 for pairs in entries.values())
    firsts = np.zeros(leaves, np.int32)
    weights = np.full((leaves, 1 if is_single else targets), nothing, dtype)
    for leaf, pairs in entries.items():
        for target, weight in pairs:
            if not 0 <= target < targets:
                raise VerifyException(f"a leaf is for target {target}, there are {targets}")
            column = 0 if is_single else target
            firsts[leaf] = target - column
            weights[leaf, column] = together(weights[leaf, column], weight)
    return firsts, weights
