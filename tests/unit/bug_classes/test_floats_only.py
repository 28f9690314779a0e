"""Functions of floats refuse integers when a model is read, those of other domains, too."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import byoc_mlir
from byoc_mlir.errors import InvalidModelError

_DOMAIN = "com.microsoft"


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize(
    ("op", "operands"),
    [
        ("QuickGelu", 1),
        ("Gelu", 1),
        ("FastGelu", 1),
        ("LayerNormalization", 2),
        ("SkipLayerNormalization", 3),
        ("SimplifiedLayerNormalization", 2),
    ],
)
def test_integers_are_refused(op: str, operands: int, is_constant: bool) -> None:
    names = [f"x{number}" for number in range(operands)]
    shapes = [(2, 4), (2, 4), (4,)] if operands == 3 else [(2, 4), (4,)]
    values = [np.ones(shape, np.int64) for shape in shapes[:operands]]
    pairs = list(zip(names, values, strict=True))
    inputs = [helper.make_tensor_value_info(one, TensorProto.INT64, x.shape) for one, x in pairs]
    constants = [numpy_helper.from_array(x, one) for one, x in pairs]
    nodes = [
        helper.make_node(op, names, ["y"], name="node", domain=_DOMAIN),
        helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["given", "z"], ["output"]),
    ]
    given = helper.make_tensor_value_info("given", TensorProto.FLOAT, (2, 4))
    graph = helper.make_graph(
        nodes,
        "integers",
        [given] if is_constant else [given, *inputs],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, (2, 4))],
        constants if is_constant else [],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_DOMAIN, 1)]
    with pytest.raises(InvalidModelError, match=rf"'node' \({op}\).* floats"):
        byoc_mlir.compile(helper.make_model(graph, opset_imports=opsets), cache=False)
