"""Branches with data-dependent shapes, as in detectors that test if there are any boxes."""

from __future__ import annotations

import re

import numpy as np
import onnx.checker
import onnx.parser
import pytest
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.frontend.stages.branch_searches import with_searches_outside
from byoc_mlir.runtime.plan import Staged
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

_DETECTOR = """
<ir_version: 9, opset_import: ["" : 20]>
detector (float[20, 4] boxes, float[20] scores) => (float[found, 4] best)
  <float least = {0.5}, int64 none = {0}, int64[1] first = {0}, int64[1] second = {1}> {
  likely = Greater (scores, least)
  places = NonZero (likely)
  rows = Squeeze (places, first)
  some_boxes = Gather <axis = 0> (boxes, rows)
  some_scores = Gather <axis = 0> (scores, rows)
  shape = Shape (some_boxes)
  elements = ReduceProd <keepdims = 0> (shape)
  is_empty = Equal (elements, none)
  kept = If (is_empty) <
    then_branch = nothing () => (int64[n] no_rows) {
      no_rows = Constant <value = int64[0] {}> ()
    },
    else_branch = the_best () => (int64[n] best_rows)
      <int64[1] most = {10}, float[1] overlap = {0.5}, int64[1] third = {2}> {
      largest = ReduceMax <keepdims = 0> (some_boxes)
      apart = Add (some_boxes, largest)
      batch = Unsqueeze (apart, first)
      one_class = Unsqueeze (some_scores, first)
      classes = Unsqueeze (one_class, first)
      selected = NonMaxSuppression (batch, classes, most, overlap)
      column = Gather <axis = 1> (selected, third)
      best_rows = Squeeze (column, second)
    }
  >
  best = Gather <axis = 0> (some_boxes, kept)
}
"""


def _model(text: str) -> ModelProto:
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model)
    return model


def _ops_of(model: ModelProto) -> tuple[list[str], list[str]]:
    """Returns the ops of the graph, and the ops of its `If`'s second branch."""
    (node,) = (node for node in model.graph.node if node.op_type == "If")
    (branch,) = (one.g for one in node.attribute if one.name == "else_branch")
    return [one.op_type for one in model.graph.node], [one.op_type for one in branch.node]


def test_searches_leave_their_branch_with_what_they_need() -> None:
    model = _model(_DETECTOR)
    changed = with_searches_outside(model)
    outside, inside = _ops_of(changed)
    moved = ["ReduceMax", "Add", "Unsqueeze", "Unsqueeze", "Unsqueeze", "NonMaxSuppression"]
    place = outside.index("If")
    assert outside[place - len(moved) : place] == moved
    assert inside == ["Gather", "Squeeze"]
    assert {"most", "overlap"} <= {tensor.name for tensor in changed.graph.initializer}
    onnx.checker.check_model(changed, full_check=True)
    assert _ops_of(model)[1] == [*moved, "Gather", "Squeeze"]


def test_one_program_with_boxes_and_one_without() -> None:
    rng = np.random.default_rng(0)
    boxes = np.sort(rng.random((20, 4), np.float32), axis=1)
    model = _model(_DETECTOR)
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        assert isinstance(executable.plan, Staged)
        for largest in (1.0, 0.9, 0.6, 0.4):
            inputs = {"boxes": boxes, "scores": rng.random(20, np.float32) * np.float32(largest)}
            assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        variants = executable.report().variants
    alone = [shapes for one in variants if one.reason for shapes in one.shapes]
    assert all(re.search(r"\b0\b", shapes) for shapes in alone), "only without boxes"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("batch = Unsqueeze (apart, first)", "batch = Reshape (apart, as_given)"),
        ("largest = ", "likely = "),  # a name that the graph around it has as well
    ],
    ids=["an op that can fail", "a name that is taken"],
)
def test_searches_stay_where_they_cannot_leave(old: str, new: str) -> None:
    text = _DETECTOR.replace(old, new).replace("some_boxes, largest", "some_boxes, likely_")
    text = text.replace("likely_", new.split(" =")[0] if "likely" in new else "largest")
    text = text.replace("int64 none", "int64[3] as_given = {1, -1, 4}, int64 none")
    model = onnx.parser.parse_model(text)
    assert with_searches_outside(model) == model
