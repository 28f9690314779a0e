"""Tree ensembles against ONNX Runtime."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from helpers.programs import fixed_programs, generic_programs, is_symbolic
from nodes import check_node, node_model, rows, run_imported
from xdsl.utils.exceptions import VerifyException

import byoc_mlir
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.ops.ml.forest import Forest, Item, TreeNode
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime
from byoc_mlir.testing.samples.onnx_nodes.trees import MODES, forest, listed

ML = "ai.onnx.ml"


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("mode", [*MODES, "all"])
def test_modes(mode: str, missing: bool) -> None:
    modes = MODES if mode == "all" else (mode,)
    trees = forest(Random(1), modes=modes, missing=missing, targets=(0, 1), dense=missing)
    data = rows(2, 40, missing=missing)
    attributes = listed(trees, "target")
    check_node("TreeEnsembleRegressor", {"x": data}, domain=ML, n_targets=2, **attributes)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_aggregates(aggregate: str, dtype: type[np.generic]) -> None:
    trees = forest(Random(3), targets=(0, 1, 2), dense=True)
    check_node(
        "TreeEnsembleRegressor",
        {"x": rows(4, 20).astype(dtype)},
        domain=ML,
        n_targets=3,
        aggregate_function=aggregate,
        base_values=[0.5, -1.0, 2.0],
        **listed(trees, "target"),
    )


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_a_leaf_with_several_weights_for_a_target(aggregate: str) -> None:
    lists = listed(forest(Random(3), targets=(0, 1), dense=True), "target")
    for name in ("treeids", "nodeids", "ids"):
        lists[f"target_{name}"] = [*lists[f"target_{name}"]] * 2
    weights = [*lists["target_weights"]]
    lists["target_weights"] = [*weights, *reversed(weights)]
    x = {"x": rows(4, 20)}
    of = {"domain": ML, "n_targets": 2, "aggregate_function": aggregate}
    check_node("TreeEnsembleRegressor", x, **of, **lists)


@pytest.mark.parametrize("post", ["SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
@pytest.mark.parametrize("targets", [(0,), (0, 1)])
def test_transforms(targets: tuple[int, ...], post: str) -> None:
    trees = forest(Random(3), count=1, positive=True, targets=targets, dense=True)
    check_node(
        "TreeEnsembleRegressor",
        {"x": rows(4, 9)},
        domain=ML,
        n_targets=len(targets),
        post_transform=post,
        **listed(trees, "target"),
    )


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize(
    ("ids", "labels", "dense", "positive", "base"),
    [
        ((0, 1, 2), [3, 5, 9], True, True, []),
        ((0, 1, 2), [0, 1, 2], True, False, [0.1, 0.2, 0.3]),
        ((1,), [0, 1], False, False, []),
        ((0,), [7, 9], False, False, [0.2]),
        ((1,), [0, 1], False, True, []),
        ((0,), [7, 9], False, True, []),
    ],
)
def test_classifiers(
    ids: tuple[int, ...],
    labels: list[int],
    dense: bool,
    positive: bool,
    base: list[float],
    post: str,
) -> None:
    trees = forest(Random(5), count=3, targets=ids, dense=dense, positive=positive)
    more: dict[str, Any] = {"base_values": base} if base else {}
    check_node(
        "TreeEnsembleClassifier",
        {"x": rows(6, 60)},
        {"label": np.int64, "scores": np.float32},
        domain=ML,
        classlabels_int64s=labels,
        post_transform=post,
        **listed(trees, "class"),
        **more,
    )


def test_two_classes_with_weights_for_both() -> None:
    """Checks that the larger score decides the label; ONNX Runtime returns 1 if the second is above
    0, for any labels.
    """
    trees = forest(Random(5), targets=(0, 1), dense=True, positive=True)
    data = {"x": rows(6, 30)}
    outputs = {"label": np.int64, "scores": np.float32}
    attributes = listed(trees, "class")
    model = node_model(
        "TreeEnsembleClassifier", data, outputs, domain=ML, classlabels_int64s=[7, 9], **attributes
    )
    scores = run_onnxruntime(model, data)["scores"]
    want = {"label": np.where(scores[:, 1] > scores[:, 0], 9, 7), "scores": scores}
    assert_agrees(run_imported(model, data), want, 2e-6)


@pytest.mark.values
@pytest.mark.parametrize("count", [1, 7, 31, 130])
@pytest.mark.parametrize(("targets", "dense"), [((0,), False), ((0, 1, 2), True)])
def test_compiled(count: int, targets: tuple[int, ...], dense: bool) -> None:
    """Checks rows in vectors and a rest, and trees in vectors and a rest."""
    trees = forest(Random(7), count=21, targets=targets, dense=dense, modes=MODES, missing=True)
    data = {"x": rows(8, count, missing=True)}
    attributes = listed(trees, "target")
    model = node_model(
        "TreeEnsembleRegressor", data, domain=ML, n_targets=len(targets), **attributes
    )
    with byoc_mlir.compile(model, targets=()) as executable:
        assert executable.report().counts() == {"host": 1}
        assert_agrees(executable.run(data), run_onnxruntime(model, data), 2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("targets", [(0,), (0, 1)])
def test_deep_trees_and_many_rows(targets: tuple[int, ...], dtype: type[np.generic]) -> None:
    """Checks rows with paths of very different lengths, and more rows than one block has."""
    trees = forest(Random(9), count=2, depth=13, targets=targets)
    data = {"x": rows(8, 300).astype(dtype)}
    attributes = listed(trees, "target")
    model = node_model(
        "TreeEnsembleRegressor", data, domain=ML, n_targets=len(targets), **attributes
    )
    with byoc_mlir.compile(model, targets=()) as executable:
        assert_agrees(executable.run(data), run_onnxruntime(model, data), 2e-6)


@pytest.mark.parametrize("targets", [(0,), (0, 1, 2)])
def test_calls_choose_how_many_rows_there_are(targets: tuple[int, ...]) -> None:
    """Checks that one program takes few rows, many, and many with a small rest."""
    trees = forest(Random(7), count=37, depth=8, targets=targets, missing=True)
    attributes = listed(trees, "target")
    count = len(targets)
    model = node_model(
        "TreeEnsembleRegressor", {"x": rows(8, 1)}, domain=ML, n_targets=count, **attributes
    )
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    model.graph.output[0].type.tensor_type.ClearField("shape")
    with byoc_mlir.compile(model, (), threads=2) as executable:
        for number in (1, 15, 16, 40, 270):
            inputs = {"x": rows(number, number, missing=True)}
            assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        assert is_symbolic(executable)
        assert len(generic_programs(executable)) == 1
        assert len(fixed_programs(executable)) == 0


def test_a_tree_that_leads_back_is_invalid() -> None:
    nodes: dict[Item, TreeNode] = {
        0: TreeNode("LEQ", 0, 0.0, 1, "leaf"),
        1: TreeNode("LEQ", 0, 0.0, "leaf", 0),
    }
    forest = Forest(nodes, {"leaf": 0}, 1, np.dtype(np.float32))
    with pytest.raises(VerifyException, match="reached from itself"):
        forest.tables([0])


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("nodes_truenodeids", 99, "has no node|two nodes without a parent"),
        ("nodes_featureids", 3, "reads feature 3, the input has 3"),
        ("nodes_nodeids", 1, "has node 1 twice"),
    ],
)
def test_malformed_trees_are_invalid(name: str, value: int, reason: str) -> None:
    trees = listed(forest(Random(9), count=1), "target")
    trees[name][0] = value
    model = node_model("TreeEnsembleRegressor", {"x": rows(1, 2)}, domain=ML, n_targets=1, **trees)
    with pytest.raises(InvalidModelError, match=rf"'n' .*({reason})"):
        byoc_mlir.compile(model, targets=())
