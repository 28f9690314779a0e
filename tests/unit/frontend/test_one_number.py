"""Operands that must have one element, and have none or two."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper
from onnx_models import model_of, node

from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend import import_model


def body(names: str) -> GraphProto:
    """Returns a branch that returns `x`, or the body of a loop, which also returns its
    condition."""
    inputs = [helper.make_tensor_value_info(name, 0, None) for name in names.split()]
    outputs = [helper.make_tensor_value_info(name, 0, None) for name in ("go", "z")[not names :]]
    nodes = [node("Identity", "x", "z")]
    nodes += [node("Identity", "on", "go")] if names else []
    return helper.make_graph(nodes, "body", inputs, outputs)


CASES = {
    "the position": [
        node("SequenceEmpty", "", "empty"),
        node("SequenceInsert", "empty x k", "all"),
        node("ConcatFromSequence", "all", "y", axis=0),
    ],
    "the condition": [
        node("Cast", "k", "condition", to=TensorProto.BOOL),
        node("If", "condition", "y", then_branch=body(""), else_branch=body("")),
    ],
    "the trip count": [
        helper.make_node("Loop", ["k", ""], ["y"], body=body("i on")),
    ],
    "k": [node("TopK", "x k", "y places")],
    "axis": [helper.make_node("DFT", ["c", "", "k"], ["y"])],
}


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("what", CASES)
def test_it_is_named(what: str, count: int) -> None:
    nodes: list[NodeProto] = [node("Unsqueeze", "x last", "c"), *CASES[what]]
    constants = [
        numpy_helper.from_array(np.ones(count, np.int64), "k"),
        numpy_helper.from_array(np.array([2]), "last"),
    ]
    with pytest.raises(InvalidModelError, match=f"{what} has {count} elements, accepted is one"):
        import_model(model_of(nodes, initializers=constants))
