"""Ensembles of decision trees, in both forms of ONNX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, TypeAlias

import numpy as np
from onnx import numpy_helper

from byoc_mlir.testing.samples.onnx_nodes.choices import maybe
from byoc_mlir.testing.samples.onnx_nodes.classical import features, labels
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import ML, Tensor

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
_F32 = np.dtype(np.float32)


@dataclass(frozen=True)
class Branch:
    """Node with two children; `mode` is an index of `MODES`."""

    feature: int
    mode: int
    value: float
    missing_is_yes: bool
    yes: Tree
    no: Tree


@dataclass(frozen=True)
class LeafWeights:
    """Targets with their weights."""

    weights: dict[int, float]


Tree: TypeAlias = Branch | LeafWeights


def forest(
    rng: Random,
    targets: Sequence[int] = (0,),
    *,
    count: int = 5,
    depth: int = 4,
    features: int = 3,
    modes: Sequence[str] = ("LEQ",),
    dense: bool = False,
    missing: bool = False,
    positive: bool = False,
) -> list[Tree]:
    """Returns random trees, whose thresholds are multiples of a half.

    Args:
        targets: each leaf has a weight for one of them, or for all if `dense`.
        missing: if true, some nodes send missing values to the branch of true.
        positive: if true, all weights are positive.
    """

    def weight() -> float:
        return rng.randint(1 if positive else -1024, 1024) / 1024

    def grown(height: int) -> Tree:
        if height == 0 or (height < depth and rng.random() < 0.2):
            chosen = targets if dense else [rng.choice(targets)]
            return LeafWeights({target: weight() for target in chosen})
        return Branch(
            rng.randrange(features),
            MODES.index(rng.choice(modes)),
            rng.randint(-4, 4) / 2,
            missing and rng.random() < 0.5,
            grown(height - 1),
            grown(height - 1),
        )

    return [grown(depth) for _ in range(count)]


def _some_trees(graph: RandomGraph, x: Tensor, targets: list[int], *, dense: bool) -> list[Tree]:
    """Returns up to five trees of several depths on the features of `x`."""
    rng = graph.rng
    modes = MODES if rng.random() < 0.3 else [rng.choice(MODES[:4])]
    missing, positive = rng.random() < 0.3, rng.random() < 0.5
    how: dict[str, Any] = {"dense": dense, "missing": missing, "positive": positive}
    return [
        tree
        for depth in rng.choices(range(5), k=rng.randint(1, 5))
        for tree in forest(
            rng, targets, count=1, depth=depth, features=x.sizes[1], modes=modes, **how
        )
    ]


@dataclass
class _TreeLists:
    """Lists of trees by tree and node, as before version 5 of `ai.onnx.ml`."""

    nodes: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    weights: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])

    def add(self, number: int, tree: Tree, numbers: Iterator[int]) -> int:
        """Adds a tree, whose nodes get the next numbers; returns the number of its root."""
        own = next(numbers)
        is_leaf = isinstance(tree, LeafWeights)
        row: dict[str, Any] = {
            "treeids": number,
            "nodeids": own,
            "featureids": 0 if is_leaf else tree.feature,
            "modes": "LEAF" if is_leaf else f"BRANCH_{MODES[tree.mode]}",
            "values": 0.0 if is_leaf else tree.value,
            "missing_value_tracks_true": 0 if is_leaf else int(tree.missing_is_yes),
            "truenodeids": 0,
            "falsenodeids": 0,
        }
        for name, value in row.items():
            self.nodes.setdefault(f"nodes_{name}", []).append(value)
        at = len(self.nodes["nodes_treeids"]) - 1
        if not is_leaf:
            self.nodes["nodes_truenodeids"][at] = self.add(number, tree.yes, numbers)
            self.nodes["nodes_falsenodeids"][at] = self.add(number, tree.no, numbers)
            return own
        for target, weight in tree.weights.items():
            row = {"treeids": number, "nodeids": own, "ids": target, "weights": weight}
            for name, value in row.items():
                self.weights.setdefault(name, []).append(value)
        return own


def listed(trees: Sequence[Tree], kind: str) -> dict[str, Any]:
    """Returns the attributes of trees before version 5 of `ai.onnx.ml`; names of the leaves' begin
    with `kind`, `target` or `class`.
    """
    lists = _TreeLists()
    for number, tree in enumerate(trees):
        lists.add(number, tree, count())
    return {**lists.nodes, **{f"{kind}_{name}": each for name, each in lists.weights.items()}}


@recipe("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(graph: RandomGraph, op_type: str) -> None:
    rng, x = graph.rng, features(graph, op_type, floats=True)
    targets = rng.randint(1, 3)
    dense = rng.random() < 0.5
    trees = _some_trees(graph, x, list(range(targets)), dense=dense)
    base = [rng.randint(-8, 8) / 8 for _ in range(targets)]
    graph.emit(
        op_type,
        [x],
        1,
        ML,
        types=[(_F32, (x.sizes[0], targets))],
        aggregate_function=rng.choice(["SUM", "SUM", "AVERAGE", "MIN", "MAX"]),
        # ONNX Runtime leaves out the base value of a target that no leaf is for
        base_values=maybe(graph, base) if dense else None,
        n_targets=targets,
        post_transform=maybe(graph, "NONE", 0.3),
        **listed(trees, "target"),
    )


@recipe("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(graph: RandomGraph, op_type: str) -> None:
    rng, x = graph.rng, features(graph, op_type)
    classes = rng.randint(2, 4)
    is_single = classes == 2 and rng.random() < 0.6
    targets = [rng.randint(0, 1)] if is_single else list(range(classes))
    trees = _some_trees(graph, x, targets, dense=is_single or rng.random() < 0.7)
    given, kind = labels(graph, classes, "int64s")
    graph.emit(
        op_type,
        [x],
        2,
        ML,
        types=[(kind, (x.sizes[0],)), (_F32, (x.sizes[0], classes))],
        post_transform=rng.choice(["NONE", "NONE", "LOGISTIC", "SOFTMAX"]),
        **given,
        **listed(trees, "class"),
    )


class _Flat:
    """Lists of all nodes and of all leaves, as from version 5 of `ai.onnx.ml` on."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.leaves: list[tuple[int, float]] = []

    def add(self, tree: Tree) -> tuple[int, bool]:
        """Adds a tree; returns its index in the list of nodes or leaves, and `True` for a leaf."""
        if isinstance(tree, LeafWeights):
            ((target, weight),) = tree.weights.items()
            self.leaves.append((target, weight))
            return len(self.leaves) - 1, True
        row: dict[str, Any] = {
            "featureids": tree.feature,
            "modes": tree.mode,
            "splits": tree.value,
            "missing_value_tracks_true": int(tree.missing_is_yes),
        }
        place = len(self.nodes)
        self.nodes.append(row)
        row["truenodeids"], row["trueleafs"] = self.add(tree.yes)
        row["falsenodeids"], row["falseleafs"] = self.add(tree.no)
        return place, False


@recipe("TreeEnsemble", domain=ML)
def tree_ensemble(graph: RandomGraph, op_type: str) -> None:
    rng, x = graph.rng, features(graph, op_type)
    targets = rng.randint(1, 3)
    flat = _Flat()
    roots: list[int] = []
    for tree in _some_trees(graph, x, list(range(targets)), dense=False):
        if isinstance(tree, LeafWeights):  # a root is no leaf
            tree = Branch(0, 0, 0.5, missing_is_yes=False, yes=tree, no=tree)
        roots.append(flat.add(tree)[0])
    columns = {name: [int(row[name]) for row in flat.nodes] for name in flat.nodes[0]}
    splits = np.array([row["splits"] for row in flat.nodes], x.dtype)
    del columns["splits"]
    modes = np.array(columns.pop("modes"), np.uint8)
    weights = np.array([weight for _, weight in flat.leaves], x.dtype)
    graph.emit(
        op_type,
        [x],
        1,
        ML,
        types=[(x.dtype, (x.sizes[0], targets))],
        aggregate_function=rng.choice([0, 1, 1, 2, 3]),
        leaf_targetids=[target for target, _ in flat.leaves],
        leaf_weights=numpy_helper.from_array(weights, "leaf_weights"),
        n_targets=targets,
        nodes_modes=numpy_helper.from_array(modes, "modes"),
        nodes_splits=numpy_helper.from_array(splits, "splits"),
        post_transform=maybe(graph, 0, 0.3),
        tree_roots=roots,
        **{f"nodes_{name}": each for name, each in columns.items()},
    )
