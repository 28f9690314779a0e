"""Ops that read or write at positions."""

from __future__ import annotations

import numpy as np

from byoc_mlir.tensors import Array
from byoc_mlir.testing.samples.onnx_nodes.choices import maybe, some_axis
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import RejectedError, Tensor
from byoc_mlir.testing.samples.onnx_nodes.values import Shape, random_shape


def positions(graph: RandomGraph, shape: Shape, size: int) -> Array:
    """Returns positions on an axis of `size`, some counted from the end."""
    count = int(np.prod(shape))
    if count and not size:
        raise RejectedError("there is no position on an empty axis")
    least = -size if graph.opset >= 11 and graph.rng.random() < 0.3 else 0
    drawn = [graph.rng.randint(least, max(size - 1, 0)) for _ in range(count)]
    dtype = graph.rng.choice([np.int64, np.int64, np.int32])
    return np.array(drawn, dtype).reshape(shape)


def _indices(graph: RandomGraph, shape: Shape, size: int) -> Tensor:
    return graph.parameter(positions(graph, shape, size), as_input=0.6)


@recipe("Gather")
def gather(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1, most=4)
    axis = some_axis(graph, x.rank)
    shape = random_shape(graph.rng, 0, 3)[-2:]
    graph.emit(op_type, [x, _indices(graph, shape, x.sizes[axis])], axis=maybe(graph, axis, 0.9))


@recipe("GatherElements")
def gather_elements(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1, most=4)
    axis = some_axis(graph, x.rank)
    shape = [graph.rng.randint(min(1, size), size) for size in x.sizes]
    shape[axis] = graph.rng.randint(1, 4)
    indices = _indices(graph, tuple(shape), x.sizes[axis])
    graph.emit(op_type, [x, indices], axis=axis)


@recipe("GatherND")
def gather_nd(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1, most=4)
    batch = graph.rng.randint(0, x.rank - 1) if graph.opset >= 12 else 0
    depth = graph.rng.randint(1, x.rank - batch)
    outer = (*x.sizes[:batch], *random_shape(graph.rng, 0, 2))
    indices = graph.parameter(_vectors(graph, outer, x.sizes[batch : batch + depth]), 0.6)
    graph.emit(op_type, [x, indices], batch_dims=batch or None)


def _vectors(graph: RandomGraph, outer: Shape, sizes: Shape) -> Array:
    parts = [positions(graph, outer, size).astype(np.int64) for size in sizes]
    return np.stack(parts, -1)


@recipe("Scatter", "ScatterElements")
def scatter(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1, most=3)
    axis = some_axis(graph, x.rank)
    shape = [graph.rng.randint(min(1, size), size) for size in x.sizes]
    count = shape[axis]
    row = graph.rng.sample(range(x.sizes[axis]), count)
    along = np.array(row, np.int64).reshape(
        [-1 if a == axis % x.rank else 1 for a in range(x.rank)]
    )
    indices = graph.parameter(np.broadcast_to(along, shape).copy(), as_input=0.5)
    updates = graph.tensor(x.dtype, tuple(shape))
    graph.emit(op_type, [x, indices, updates], axis=axis, reduction=_reduction(graph, op_type))


@recipe("ScatterND")
def scatter_nd(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1, most=4)
    depth = graph.rng.randint(1, x.rank)
    cells = list(np.ndindex(*x.sizes[:depth]))
    chosen = graph.rng.sample(cells, graph.rng.randint(min(1, len(cells)), min(3, len(cells))))
    indices = graph.parameter(np.array(chosen, np.int64).reshape(-1, depth), as_input=0.5)
    updates = graph.tensor(x.dtype, (len(chosen), *x.sizes[depth:]))
    graph.emit(op_type, [x, indices, updates], reduction=_reduction(graph, op_type))


def _reduction(graph: RandomGraph, op_type: str) -> str | None:
    choices = ["none", "add", "mul"] if graph.opset >= 16 else ["none"]
    choices += ["min", "max"] if graph.opset >= 18 else []
    return graph.rng.choice(choices) if graph.rng.random() < 0.6 else None


@recipe("OneHot")
def one_hot(graph: RandomGraph, op_type: str) -> None:
    depth = graph.rng.randint(1, 6)
    shape = random_shape(graph.rng, 0, 3)
    indices = graph.parameter(positions(graph, shape, depth).astype(np.int64), as_input=0.6)
    dtype = graph.pick_dtype(graph.dtypes(op_type, 2))
    values = graph.tensor(dtype, (2,))
    axis = graph.rng.randint(-len(shape) - 1, len(shape))
    depth_ = graph.parameter(np.array(depth, np.int64))
    graph.emit(op_type, [indices, depth_, values], axis=axis)


@recipe("TopK")
def top_k(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1, most=4)
    axis = some_axis(graph, x.rank)
    k = graph.rng.randint(0 if graph.opset >= 11 else min(1, x.sizes[axis]), x.sizes[axis])
    value = np.array([k], np.int64) if graph.opset >= 10 else k
    largest = maybe(graph, graph.rng.randint(0, 1))
    graph.emit(op_type, [x], 2, axis=axis, k=value, largest=largest)


@recipe("Compress")
def compress(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1, most=3)
    axis = some_axis(graph, x.rank) if graph.rng.random() < 0.7 else None
    size = int(np.prod(x.sizes)) if axis is None else x.sizes[axis]
    chosen = [graph.rng.random() < 0.5 for _ in range(size)]
    graph.emit(op_type, [x, graph.parameter(np.array(chosen, np.bool_), 0.5)], axis=axis)


@recipe("TensorScatter")
def tensor_scatter(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    batch, length, width = rng.randint(1, 3), rng.randint(2, 6), rng.randint(1, 4)
    count = rng.randint(1, length)
    past = graph.tensor(graph.dtypes(op_type), (batch, length, width))
    update = graph.tensor(past.dtype, (batch, count, width))
    starts = np.array([rng.randint(0, length - count) for _ in range(batch)], np.int64)
    mode = rng.choice(["linear", "circular"])
    graph.emit(op_type, [past, update, graph.parameter(starts, 0.4)], axis=1, mode=mode)
