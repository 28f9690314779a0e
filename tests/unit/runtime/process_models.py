"""Small models, and scripts that run in a separate process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Floats = npt.NDArray[np.float32]


def convolution(size: int = 24) -> onnx.ModelProto:
    """Returns a convolution with ops after it: work for oneDNN's threads and for the host's."""
    weights = np.random.default_rng(0).standard_normal((16, 16, 3, 3)).astype(np.float32)
    shape: list[int | str] = [1, 16, size, size]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Softmax", ["b"], ["y"]),
    ]
    return _model(nodes, shape, shape, {"w": weights})


def elementwise(size: int | str = 4) -> onnx.ModelProto:
    """Returns a model with almost no work; `size` may be the name of a dimension."""
    return _model([helper.make_node("Exp", ["x"], ["y"])], [size], [size], {})


def scaled(weights: Floats) -> onnx.ModelProto:
    """Returns a model that multiplies its input by constants."""
    shape = list(weights.shape)
    return _model([helper.make_node("Mul", ["x", "w"], ["y"])], shape, shape, {"w": weights})


def inputs(model: onnx.ModelProto, seed: int = 0) -> dict[str, Floats]:
    """Returns random inputs for a model without symbolic dimensions."""
    shape = [size.dim_value for size in model.graph.input[0].type.tensor_type.shape.dim]
    return {"x": np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}


def run_script(source: str, *, timeout: float, arguments: tuple[str, ...] = ()) -> str:
    """Returns the output of a script, with this folder among its modules; the script must end in
    time, with status 0.
    """
    done = subprocess.run(
        [sys.executable, "-c", source, *arguments],
        cwd=Path(__file__).parent,
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _model(
    nodes: list[onnx.NodeProto],
    shape: list[int | str],
    result: list[int | str],
    weights: dict[str, Floats],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
