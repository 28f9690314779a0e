"""Small ONNX models for the tests of the oneDNN backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from helpers.models import model_of
from onnx import ModelProto, NodeProto, helper

from byoc_mlir import compile as compile_model
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.runtime.report import Report
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

OWN_LAYOUTS = (
    "channels_last",
    *(["blocked_8"] if VectorUnit.of(Cpu.host().features).lanes >= 8 else []),
)
"""Layouts that built-in convolutions support: blocks of channels are whole vectors."""


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int]],
    weights: Mapping[str, Any] | None = None,
    output: str = "y",
) -> ModelProto:
    """Returns a model of `f32` inputs; `weights` are shapes (drawn at random) or arrays."""
    rng = np.random.default_rng(11)
    constants = {
        name: value
        if isinstance(value, np.ndarray)
        else rng.standard_normal(value, dtype=np.float32) * 0.3
        for name, value in (weights or {}).items()
    }
    return model_of(nodes, inputs, constants, [output])


def node(op_type: str, inputs: str, output: str = "y", **attributes: Any) -> NodeProto:
    """Returns a node; `inputs` are names separated by blanks."""
    name = f"{op_type}_{output}"
    return helper.make_node(op_type, inputs.split(), [output], name=name, **attributes)


def scalar(value: float) -> Any:
    """Returns a constant of rank 0."""
    return np.array(value, np.float32)


def convolution(
    source: Sequence[int],
    outputs: int,
    window: Sequence[int],
    after: Sequence[NodeProto] = (),
    inputs: str = "a w b",
    **attributes: Any,
) -> ModelProto:
    """Returns a model: a 1x1 convolution, a convolution to `y` or to `c`, and nodes `after` it; `r`
    is a residual.
    """
    channels, group = source[1], attributes.get("group", 1)
    name = "c" if after else "y"
    nodes = [
        node("Conv", "x v", "a"),
        node("Conv", "x u", "r"),
        node("Conv", inputs, name, kernel_shape=window, **attributes),
        *after,
    ]
    used = [one for one in nodes if one.output[0] != "r" or any("r" in o.input for o in after)]
    weights: dict[str, Any] = {
        "v": (channels, channels, 1, 1),
        "u": (outputs, channels, 1, 1),
        "w": (outputs, channels // group, *window),
        "b": (outputs,),
        "low": scalar(-4),
        "high": scalar(4),
    }
    read = {one for each in used for one in each.input}
    kept = {key: value for key, value in weights.items() if key in read}
    return model(used, {"x": tuple(source)}, kept)


def check(
    built: ModelProto, tolerance: float = 1e-5, target: str = "dnnl", **options: Any
) -> Report:
    """Compiles for oneDNN, compares with ONNX Runtime, and returns the report."""
    inputs = random_inputs(built, seed=5)
    executable = compile_model(built, targets=(target,), fallback="allow", **options)
    with executable:
        outputs = executable.run(inputs)
        report = executable.report()
    assert_agrees(outputs, run_onnxruntime(built, inputs), tolerance=tolerance)
    return report
