"""Ensembles of decision trees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, logic, ml
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.ml.features import DOMAIN
from byoc_mlir.frontend.ops.ml.forest import Forest, Item, TreeNode, leaf_tables
from byoc_mlir.frontend.ops.ml.labels import labels_of
from byoc_mlir.frontend.ops.ml.post_transforms import (
    NAMES,
    as_features,
    binary,
    regressed,
    transformed,
)
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import Array, NodeRefused, Value

_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
Entries = Mapping[int, Sequence[tuple[int, float]]]


def _scores(
    context: NodeContext,
    data: Value,
    nodes: Mapping[Item, TreeNode],
    leaves: Mapping[Item, int],
    roots: Sequence[Item],
    entries: Entries,
    targets: int,
    aggregate: str,
) -> Value:
    """Returns the aggregated scores of the trees, `[N, targets]`: sum, mean, minimum or maximum."""
    if aggregate not in _AGGREGATES:
        raise NodeRefused(
            f"aggregate_function is '{aggregate}', accepted are {', '.join(_AGGREGATES)}"
        )
    kind = aggregate.lower() if aggregate in ("MIN", "MAX") else "sum"
    tables = Forest(nodes, leaves, data.number(1), data.dtype).tables(roots)
    firsts, weights = leaf_tables(entries, len(leaves), targets, kind, data.dtype)
    if tables.needs_low:
        is_nan = context.emit(logic.IsnanOp, data)
        low = context.emit(elementwise.WhereOp, is_nan, data.dtype.type(-np.inf), data)
        data = arith.concatenate(context, [data, low], 1)
    named = {
        "roots": tables.roots,
        "depths": tables.depths,
        "lefts": tables.lefts,
        "features": tables.features,
        "thresholds": tables.thresholds,
        "leaves": tables.leaves,
        "firsts": firsts,
        "weights": weights,
    }
    constants = [
        Value(f"{context.name}.{name}", array, context.constant(0).location)
        for name, array in named.items()
    ]
    scores = context.emit(ml.TreeEnsembleOp, data, *constants, targets=targets, aggregate=kind)
    if kind != "sum":  # a target that no leaf is for has 0
        is_empty = context.emit(logic.IsinfOp, scores)
        scores = arith.where(context, is_empty, 0.0, scores)
    return arith.divide(context, scores, len(roots)) if aggregate == "AVERAGE" else scores


def _given(
    numbers: Sequence[float] | None, tensor: Array | None, what: str, count: int | None = None
) -> list[float]:
    """Returns an attribute as a list; the node may have it as a list or as a tensor."""
    found = list(numbers or ()) if tensor is None else tensor.reshape(-1).tolist()
    if count is not None and len(found) != count:
        raise VerifyException(f"{what} has {len(found)} entries, accepted are {count}")
    return found


@dataclass(frozen=True, kw_only=True)
class ListAttributes:
    """Attributes of ensembles before version 5: lists with an entry per node, leaf weight or
    tree.
    """

    base_values: Sequence[float] | None = None
    base_values_as_tensor: Array | None = None
    nodes_falsenodeids: Sequence[int] | None = None
    nodes_featureids: Sequence[int] | None = None
    nodes_hitrates: Sequence[float] | None = None
    nodes_hitrates_as_tensor: Array | None = None
    nodes_missing_value_tracks_true: Sequence[int] | None = None
    nodes_modes: Sequence[str] | None = None
    nodes_nodeids: Sequence[int] | None = None
    nodes_treeids: Sequence[int] | None = None
    nodes_truenodeids: Sequence[int] | None = None
    nodes_values: Sequence[float] | None = None
    nodes_values_as_tensor: Array | None = None
    post_transform: str = "NONE"

    @property
    def tensors(self) -> tuple[Array | None, Array | None]:
        """Returns the attributes that are tensors; their types determine the precision of all
        scores.
        """
        return self.nodes_values_as_tensor, self.base_values_as_tensor

    @property
    def base(self) -> list[float]:
        """Returns the values to add to the scores; empty if there are none."""
        return _given(self.base_values, self.base_values_as_tensor, "base_values")


class _Listed:
    """Trees built from these lists."""

    def __init__(self, attributes: ListAttributes):
        keys = ("treeids", "nodeids", "featureids", "modes", "truenodeids", "falsenodeids")
        lists: dict[str, list[Any]] = {
            key: list(getattr(attributes, f"nodes_{key}") or ()) for key in keys
        }
        count = len(lists["treeids"])
        values = _given(
            attributes.nodes_values, attributes.nodes_values_as_tensor, "nodes_values", count
        )
        missing = list(attributes.nodes_missing_value_tracks_true or [0] * count)
        for key, found in (*lists.items(), ("missing_value_tracks_true", missing)):
            if len(found) != count:
                raise VerifyException(f"nodes_{key} has {len(found)} entries, accepted are {count}")
        self.nodes: dict[Item, TreeNode] = {}
        self.leaves: dict[Item, int] = {}
        children: set[Item] = set()
        rows = zip(*(lists[key] for key in keys), values, missing, strict=True)
        for tree, node, feature, mode, yes, no, value, is_missing in rows:
            key = (tree, node)
            if key in self.nodes or key in self.leaves:
                raise VerifyException(f"tree {tree} has node {node} twice")
            if mode == "LEAF":
                self.leaves[key] = len(self.leaves)
                continue
            children.update([(tree, yes), (tree, no)])
            kind = mode.removeprefix("BRANCH_")
            self.nodes[key] = TreeNode(
                kind, feature, value, (tree, yes), (tree, no), bool(is_missing)
            )
        self.roots = self._roots(zip(lists["treeids"], lists["nodeids"], strict=True), children)

    @staticmethod
    def _roots(keys: Any, children: set[Item]) -> list[Item]:
        roots: dict[int, Item] = {}
        for key in keys:
            if key in children:
                roots.setdefault(key[0], None)
            elif roots.get(key[0]) is None:
                roots[key[0]] = key
            else:
                raise VerifyException(f"tree {key[0]} has two nodes without a parent")
        for tree, root in roots.items():
            if root is None:
                raise VerifyException(f"tree {tree} has no node without a parent")
        return list(roots.values())

    def entries(
        self,
        trees: Sequence[int] | None,
        nodes: Sequence[int] | None,
        targets: Sequence[int] | None,
        weights: Sequence[float],
    ) -> Entries:
        """Returns pairs of target and weight, for each leaf."""
        found: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
        lists = [list(each or ()) for each in (trees, nodes, targets)]
        if {len(each) for each in lists} != {len(weights)}:
            raise VerifyException("the lists of trees, nodes, targets and weights differ in length")
        for tree, node, target, weight in zip(*lists, weights, strict=True):
            leaf = self.leaves.get((tree, node))
            if leaf is None:
                raise VerifyException(
                    f"a weight is for node {node} of tree {tree}, which is no leaf"
                )
            found[leaf].append((target, weight))
        return found


@register_op(DOMAIN, "TreeEnsembleRegressor", attributes=ListAttributes)
def tree_ensemble_regressor(
    context: NodeContext,
    data: Value,
    *,
    attributes: ListAttributes,
    aggregate_function: str = "SUM",
    n_targets: int = 1,
    target_ids: Sequence[int] | None = None,
    target_nodeids: Sequence[int] | None = None,
    target_treeids: Sequence[int] | None = None,
    target_weights: Sequence[float] | None = None,
    target_weights_as_tensor: Array | None = None,
) -> Value:
    trees = _Listed(attributes)
    weights = _given(target_weights, target_weights_as_tensor, "target_weights")
    entries = trees.entries(target_treeids, target_nodeids, target_ids, weights)
    rows = as_features(context, data, *attributes.tensors, target_weights_as_tensor)
    scores = _scores(
        context,
        rows,
        trees.nodes,
        trees.leaves,
        trees.roots,
        entries,
        n_targets,
        aggregate_function,
    )
    scores = _with_base(context, scores, attributes.base)
    return cast(
        context, regressed(context, scores, attributes.post_transform), np.dtype(np.float32)
    )


def _with_base(context: NodeContext, scores: Value, base: Sequence[float]) -> Value:
    if not base:
        return scores
    if len(base) != scores.number(1):
        raise NodeRefused(f"base_values has {len(base)} entries, accepted are {scores.number(1)}")
    return arith.add(context, scores, context.constant([base], scores.dtype))


@register_op(DOMAIN, "TreeEnsembleClassifier", attributes=ListAttributes)
def tree_ensemble_classifier(
    context: NodeContext,
    data: Value,
    *,
    attributes: ListAttributes,
    class_ids: Sequence[int] | None = None,
    class_nodeids: Sequence[int] | None = None,
    class_treeids: Sequence[int] | None = None,
    class_weights: Sequence[float] | None = None,
    class_weights_as_tensor: Array | None = None,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
) -> Sequence[Value]:
    labels = labels_of(classlabels_int64s, classlabels_strings)
    trees = _Listed(attributes)
    weights = _given(class_weights, class_weights_as_tensor, "class_weights")
    entries = trees.entries(class_treeids, class_nodeids, class_ids, weights)
    rows = as_features(context, data, *attributes.tensors, class_weights_as_tensor)
    base, post_transform = attributes.base, attributes.post_transform
    ids = set(class_ids or ())
    is_binary = len(labels) == 2 and len(ids) == 1
    is_single = is_binary and ids == {0} and len(base) < 2
    if is_binary and ids == {1} and len(base) == 1:
        base = []  # ONNX is vague about it; it counts as little as in ONNX Runtime
    count = 1 if is_single else len(labels)
    scores = _scores(context, rows, trees.nodes, trees.leaves, trees.roots, entries, count, "SUM")
    scores = cast(context, _with_base(context, scores, base), np.dtype(np.float32))
    if not is_binary:
        return labels.best(context, scores), transformed(context, scores, post_transform)
    is_share = all(weight >= 0 for weight in weights)
    (own,) = ids
    voted = arith.section(context, scores, 1, own, own + 1)
    best = labels.second_if_above(context, voted, 0.5 if is_share else 0.0)
    if not is_single:
        return best, transformed(context, scores, post_transform)
    return best, binary(context, scores, post_transform, float(is_share))


@register_op(DOMAIN, "TreeEnsemble", since=5)
def tree_ensemble(
    context: NodeContext,
    data: Value,
    *,
    leaf_targetids: Sequence[int],
    leaf_weights: Array,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_modes: Array,
    nodes_splits: Array,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    tree_roots: Sequence[int],
    aggregate_function: int = 1,
    membership_values: Array | None = None,
    n_targets: int = 1,
    nodes_hitrates: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    post_transform: int = 0,
) -> Value:
    count = len(nodes_featureids)
    missing = nodes_missing_value_tracks_true or [0] * count
    columns = (
        nodes_falseleafs,
        nodes_falsenodeids,
        nodes_modes.reshape(-1),
        nodes_splits.reshape(-1),
        nodes_trueleafs,
        nodes_truenodeids,
        missing,
    )
    if any(len(column) != count for column in columns):
        raise VerifyException("the lists of nodes differ in length")
    for what, number, names in (
        ("aggregate_function", aggregate_function, _AGGREGATES),
        ("post_transform", post_transform, NAMES),
    ):
        if not 0 <= number < len(names):
            raise NodeRefused(f"{what} is {number}, accepted are 0 to {len(names) - 1}")
    sets = _sets(membership_values)
    nodes: dict[Item, TreeNode] = {}
    for number in range(count):
        mode = int(columns[2][number])
        if not 0 <= mode < len(_MODES):
            raise NodeRefused(f"a node's mode is {mode}, accepted are 0 to {len(_MODES) - 1}")
        is_set = _MODES[mode] == "MEMBER"
        if is_set and not sets:
            raise VerifyException(
                "membership_values has fewer sets than there are nodes of that mode"
            )
        nodes[number] = TreeNode(
            _MODES[mode],
            nodes_featureids[number],
            float(columns[3][number]),
            _child(nodes_truenodeids[number], is_leaf=bool(nodes_trueleafs[number])),
            _child(nodes_falsenodeids[number], is_leaf=bool(nodes_falseleafs[number])),
            bool(missing[number]),
            sets.pop(0) if is_set else (),
        )
    leaves: dict[Item, int] = {("leaf", leaf): leaf for leaf in range(len(leaf_targetids))}
    pairs = zip(leaf_targetids, leaf_weights.reshape(-1).tolist(), strict=True)
    entries = {leaf: [pair] for leaf, pair in enumerate(pairs)}
    rows = as_features(context, data, nodes_splits, leaf_weights)
    aggregate = _AGGREGATES[aggregate_function]
    scores = _scores(context, rows, nodes, leaves, list(tree_roots), entries, n_targets, aggregate)
    return cast(context, regressed(context, scores, NAMES[post_transform]), data.dtype)


def _child(number: int, *, is_leaf: bool) -> Item:
    return ("leaf", number) if is_leaf else number


def _sets(members: Array | None) -> list[tuple[float, ...]]:
    """Returns the sets of numbers of the MEMBER nodes; in `members`, NaNs separate the sets."""
    found: list[tuple[float, ...]] = []
    current: list[float] = []
    for value in [] if members is None else members.reshape(-1).tolist():
        if np.isnan(value):
            found.append(tuple(current))
            current = []
        else:
            current.append(value)
    return [*found, tuple(current)] if current else found
