"""Models that are served in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.tensors import TensorInfo

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)


class Doubling:
    """Model `y = 2 x` by rows of two, which refuses rows that begin with 13; records the rows of
    each run.
    """

    def __init__(self, rows: int | str = "n"):
        self.inputs: Sequence[TensorInfo] = (TensorInfo("x", F32, (rows, 2)),)
        self.outputs: Sequence[TensorInfo] = (TensorInfo("y", F32, (rows, 2)),)
        self.runs: list[int] = []

    def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]:
        x = inputs["x"]
        self.runs.append(len(x))
        if np.any(x[:, 0] == 13):
            raise InvalidInputError("a row begins with 13")
        return {"y": 2 * x}


def affine_model(rows: int | str = "n") -> bytes:
    """Returns `y = 2 x + 1`, by rows of two."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [rows, 2]) for n in "xy")
    constants = [helper.make_tensor(n, TensorProto.FLOAT, [], [v]) for n, v in (("a", 2), ("b", 1))]
    nodes = [helper.make_node("Mul", ["x", "a"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    graph = helper.make_graph(nodes, "affine", [x], [y], constants)
    opsets = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
