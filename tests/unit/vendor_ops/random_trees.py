"""Random decision trees, in the form that ONNX had before version 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


class RandomTrees:
    """Trees on `features` features, whose thresholds are multiples of a half.

    Args:
        targets: each leaf has a weight for one of them, or for all if `dense`.
        missing: if true, some nodes send missing values to the branch of true.
    """

    def __init__(
        self,
        seed: int,
        *,
        count: int = 5,
        depth: int = 4,
        features: int = 3,
        targets: Sequence[int] = (0,),
        modes: Sequence[str] = ("BRANCH_LEQ",),
        dense: bool = False,
        missing: bool = False,
        positive: bool = False,
    ):
        self._rng = np.random.default_rng(seed)
        self._features, self._targets, self._modes = features, targets, modes
        self._dense, self._missing, self._positive = dense, missing, positive
        self.nodes: dict[str, list[Any]] = {
            f"nodes_{name}": []
            for name in (
                "treeids",
                "nodeids",
                "featureids",
                "modes",
                "values",
                "truenodeids",
                "falsenodeids",
                "missing_value_tracks_true",
            )
        }
        self.weights: dict[str, list[Any]] = {
            "treeids": [],
            "nodeids": [],
            "ids": [],
            "weights": [],
        }
        for tree in range(count):
            self._grow(tree, depth)

    def attributes(self, kind: str) -> dict[str, Any]:
        """Returns the attributes of the nodes and of the leaves, as `target_…` or `class_…`."""
        return {**self.nodes, **{f"{kind}_{name}": each for name, each in self.weights.items()}}

    def _grow(self, tree: int, depth: int) -> None:
        rng, start = self._rng, len(self.nodes["nodes_treeids"])

        def add(level: int) -> int:
            number = len(self.nodes["nodes_treeids"]) - start
            is_leaf = level == 0 or (level < depth and rng.random() < 0.2)
            row: dict[str, Any] = {
                "treeids": tree,
                "nodeids": number,
                "featureids": 0 if is_leaf else int(rng.integers(self._features)),
                "modes": "LEAF" if is_leaf else str(rng.choice(self._modes)),
                "values": 0.0 if is_leaf else float(rng.integers(-4, 5)) / 2,
                "truenodeids": 0,
                "falsenodeids": 0,
                "missing_value_tracks_true": int(self._missing and rng.random() < 0.5),
            }
            for name, value in row.items():
                self.nodes[f"nodes_{name}"].append(value)
            if is_leaf:
                self._weigh(tree, number)
            else:
                self.nodes["nodes_truenodeids"][start + number] = add(level - 1)
                self.nodes["nodes_falsenodeids"][start + number] = add(level - 1)
            return number

        add(depth)

    def _weigh(self, tree: int, node: int) -> None:
        chosen = self._targets if self._dense else [int(self._rng.choice(self._targets))]
        for target in chosen:
            weight = self._rng.random() if self._positive else self._rng.standard_normal()
            for name, value in zip(
                self.weights, (tree, node, target, float(np.float32(weight))), strict=True
            ):
                self.weights[name].append(value)


def rows(
    seed: int, count: int, features: int = 3, *, missing: bool = False
) -> np.ndarray[Any, Any]:
    """Returns rows that often meet the thresholds exactly."""
    rng = np.random.default_rng(seed)
    data = (rng.integers(-5, 6, (count, features)) / 2).astype(np.float32)
    return np.where(rng.random(data.shape) < 0.2, np.float32(np.nan), data) if missing else data
