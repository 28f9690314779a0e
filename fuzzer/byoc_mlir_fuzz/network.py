"""Blocks of networks that backends take: layers with epilogues and residuals."""

from __future__ import annotations

from typing import Any

import numpy as np

from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.matrix import (
    add_batch_normalization,
    add_gemm,
    add_matmul,
)
from byoc_mlir.testing.samples.onnx_nodes.tensor import RejectedError, Tensor
from byoc_mlir.testing.samples.onnx_nodes.window import add_conv, image_of

_F32 = np.dtype(np.float32)

_ACTIVATIONS = (
    *("Relu", "Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "HardSigmoid", "HardSwish"),
    *("Softplus", "Gelu", "Mish", "Clip", "PRelu", "SiLU", "Exp", "Abs", "Sqrt"),
)


def add_block(graph: RandomGraph) -> None:
    """Adds a layer, which is a convolution, matmul or pool, and its usual epilogue.

    Raises:
        RejectedError: it is not valid.
    """
    graph.rng.choice((_conv_block, _conv_block, _matrix_block, _matrix_block, _pool_block))(graph)


def _conv_block(graph: RandomGraph) -> None:
    x = _previous(graph, 4) or image_of(graph, [_F32], 2)
    y = add_conv(graph, x)
    if graph.rng.random() < 0.3:
        y = add_batch_normalization(graph, y)
    _epilogue(graph, y, x)


def _matrix_block(graph: RandomGraph) -> None:
    x = _previous(graph, 2) or graph.tensor([_F32], least=2, most=3)
    y = add_gemm(graph, x) if x.rank == 2 and graph.rng.random() < 0.5 else add_matmul(graph, x)
    if graph.rng.random() < 0.5 and y.rank:
        (y,) = graph.emit("Add", [y, graph.tensor(_F32, y.sizes[-1:])], broadcast=1)
    _epilogue(graph, y, x)
    if graph.rng.random() < 0.2 and y.rank:
        graph.emit("Softmax", [y], axis=y.rank - 1)


def _pool_block(graph: RandomGraph) -> None:
    x = _previous(graph, 4) or image_of(graph, [_F32], 2)
    op_type = graph.rng.choice(["MaxPool", "AveragePool", "GlobalAveragePool"])
    size = graph.rng.choice([2, 3])
    window: dict[str, Any] = {"kernel_shape": [size] * 2, "strides": [graph.rng.choice([1, 2])] * 2}
    graph.emit(op_type, [x], **(window if op_type != "GlobalAveragePool" else {}))


def _previous(graph: RandomGraph, rank: int) -> Tensor | None:
    """Returns an existing f32 value of a rank, mostly the last one; at times `None`."""
    fits = [v for v in graph.values if v.dtype == _F32 and v.shape and len(v.shape) == rank]
    if not fits or graph.rng.random() < 0.1:
        return None
    return fits[-1] if graph.rng.random() < 0.8 else graph.rng.choice(fits)


def _epilogue(graph: RandomGraph, y: Tensor, x: Tensor) -> None:
    """Adds up to three activations, sums with other values, and scales."""
    for _ in range(graph.rng.randint(0, 3)):
        kind = graph.rng.random()
        if kind < 0.5:
            y = _activation(graph, y)
        elif kind < 0.75:
            y = _residual(graph, y, x)
        else:
            channels = (1, y.sizes[1], *[1] * (y.rank - 2)) if y.rank > 2 else (1,)
            op_type = graph.rng.choice(["Mul", "Add", "Sub", "Div", "Max", "Min"])
            shape = graph.rng.choice([channels, ()])
            (y,) = graph.emit(op_type, [y, graph.tensor(_F32, shape)], broadcast=1)


def _residual(graph: RandomGraph, y: Tensor, x: Tensor) -> Tensor:
    there = [v for v in graph.values if v.dtype == _F32 and v.shape == y.shape and v != y]
    other = graph.rng.choice(there) if there else graph.tensor(_F32, y.sizes)
    operands = graph.rng.sample([y, x if x.shape == y.shape else other], 2)
    return graph.emit("Add", operands)[0]


def _activation(graph: RandomGraph, y: Tensor) -> Tensor:
    op_type = graph.rng.choice(_ACTIVATIONS)
    if op_type == "SiLU":
        (gate,) = graph.emit("Sigmoid", [y])
        return graph.emit("Mul", [y, gate])[0]
    if op_type == "PRelu":
        slope = (y.sizes[1], *[1] * (y.rank - 2)) if y.rank > 2 else (1,)
        return graph.emit("PRelu", [y, graph.tensor(_F32, slope)])[0]
    if op_type == "Clip":
        if graph.opset < 11:
            return graph.emit("Clip", [y], min=0.0, max=6.0)[0]
        bounds = [graph.constant(np.array(n, np.float32)) for n in (0, 6)]
        return graph.emit("Clip", [y, *bounds])[0]
    if y.shape is None:
        raise RejectedError("no shape")
    return graph.emit(op_type, [y])[0]
