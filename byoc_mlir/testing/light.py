"""Light networks: the nine `light_*` networks that come with the `onnx` package.

Their weights are `ConstantOfShape` nodes of one value, so every channel computes the same value and
many mistakes stay hidden. `with_random_weights` gives them weights that show mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

_Floats: TypeAlias = npt.NDArray[np.float32]
_Shape: TypeAlias = tuple[int, ...]


def light_networks() -> dict[str, Path]:
    """Returns the file of each light network in the installed `onnx`, by name
    (`light_resnet50`)."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return {path.stem: path for path in sorted(folder.glob("light_*.onnx"))}


def with_random_weights(model: ModelProto, seed: int = 0) -> ModelProto:
    """Returns a copy of `model` whose float parameters are seeded random values.

    Parameters are the outputs of `ConstantOfShape` nodes and the float initializers. Their
    distribution depends on the op that reads them, and keeps activations near one. In the result
    all parameters are initializers, and no initializer is a graph input.
    """
    graph = model.graph
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    shapes = _parameter_shapes(model)
    roles = _roles(nodes)
    rng = np.random.default_rng(seed)
    parameters = [
        numpy_helper.from_array(_draw(rng, shape, roles[name]), name)
        for name, shape in shapes.items()
        if name in roles
    ]
    others = [tensor for tensor in graph.initializer if tensor.name in roles.keys() - shapes.keys()]
    initialized = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in initialized]
    return onnx.helper.make_model(
        onnx.helper.make_graph(nodes, graph.name, inputs, graph.output, [*others, *parameters]),
        opset_imports=model.opset_import,
        ir_version=8,
    )


def _parameter_shapes(model: ModelProto) -> dict[str, _Shape]:
    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    shapes = {
        name: tuple(tensor.dims)
        for name, tensor in initializers.items()
        if tensor.data_type == TensorProto.FLOAT
    }
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            shape = numpy_helper.to_array(initializers[node.input[0]])
            shapes[node.output[0]] = tuple(int(size) for size in shape)
    return shapes


@dataclass(frozen=True)
class _Role:
    """Role of a value for the first op that reads it."""

    op_type: str
    operand: int
    in_branch: bool
    """True if that op ends a residual branch, which must not dominate the sum."""


def _roles(nodes: Sequence[NodeProto]) -> dict[str, _Role]:
    """Returns the role of every value, seen through the ops that only change a parameter's
    shape."""
    summed = {name for node in nodes if node.op_type == "Sum" for name in node.input}
    roles: dict[str, _Role] = {}
    for node in reversed(nodes):
        in_branch = not summed.isdisjoint(node.output)
        for operand, name in enumerate(node.input):
            roles[name] = _Role(node.op_type, operand, in_branch)
        if node.op_type in ("Unsqueeze", "Reshape"):
            roles[node.input[0]] = roles[node.output[0]]
    return roles


def _draw(rng: np.random.Generator, shape: _Shape, role: _Role) -> _Floats:
    drawn = _DRAWS[role.op_type, role.operand](rng, shape)
    scales_branch = role.in_branch and (role.op_type, role.operand) == ("BatchNormalization", 1)
    return drawn * np.float32(0.3) if scales_branch else drawn


def _he(rng: np.random.Generator, shape: _Shape) -> _Floats:
    """Draws weights that keep the second moment behind a ReLU; the output axis is the first longer
    than one.
    """
    outputs = next(size for size in shape if size > 1)
    return _normal(math.sqrt(2.0 * outputs / math.prod(shape)))(rng, shape)


_Draw: TypeAlias = Callable[[np.random.Generator, _Shape], _Floats]


def _normal(deviation: float) -> _Draw:
    def draw(rng: np.random.Generator, shape: _Shape) -> _Floats:
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(deviation)

    return draw


def _uniform(low: float, high: float) -> _Draw:
    def draw(rng: np.random.Generator, shape: _Shape) -> _Floats:
        return rng.random(shape, dtype=np.float32) * np.float32(high - low) + np.float32(low)

    return draw


_DRAWS: dict[tuple[str, int], _Draw] = {
    ("Conv", 1): _he,
    ("Conv", 2): _normal(0.1),
    ("Gemm", 1): _he,
    ("Gemm", 2): _normal(0.1),
    ("BatchNormalization", 1): _uniform(0.7, 1.2),
    ("BatchNormalization", 2): _normal(0.2),
    ("BatchNormalization", 3): _normal(0.2),
    ("BatchNormalization", 4): _uniform(0.8, 1.3),
    ("Mul", 1): _uniform(0.7, 1.2),
    ("Add", 1): _normal(0.2),
}
"""Distributions of parameters, by op and operand."""
