"""Matmuls, normalisations and other ops on rows."""

from __future__ import annotations

import numpy as np

from byoc_mlir.testing.samples.onnx_nodes.choices import maybe, some_axis
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import RejectedError, Tensor
from byoc_mlir.testing.samples.onnx_nodes.values import broadcastable, is_float


@recipe("MatMul")
def matmul(graph: RandomGraph, op_type: str) -> None:
    add_matmul(graph, graph.tensor(graph.dtypes(op_type), least=1, most=5))


def add_matmul(graph: RandomGraph, x: Tensor) -> Tensor:
    """Adds a matmul of `x` and a matrix, vector or stack of matrices; returns its result."""
    (y,) = graph.emit("MatMul", [x, _right(graph, x, x.dtype)])
    return y


def _right(graph: RandomGraph, x: Tensor, dtype: np.dtype) -> Tensor:
    depth, columns = x.sizes[-1], graph.rng.choice([1, 2, 3, 5, 8, 16, 17])
    stack = broadcastable(graph.rng, x.sizes[:-2]) if graph.rng.random() < 0.4 else ()
    shape = (depth,) if graph.rng.random() < 0.1 else (*stack, depth, columns)
    return graph.tensor(dtype, shape)


@recipe("Gemm")
def gemm(graph: RandomGraph, op_type: str) -> None:
    floats = [dtype for dtype in graph.dtypes(op_type) if is_float(dtype)]
    add_gemm(graph, graph.tensor(floats, least=2, most=2))


def add_gemm(graph: RandomGraph, x: Tensor) -> Tensor:
    """Adds a `Gemm` of the matrix `x` in one of its forms; returns its result."""
    rng = graph.rng
    trans_a, trans_b = rng.random() < 0.25, rng.random() < 0.4
    depth, rows = x.sizes if trans_a else x.sizes[::-1]
    columns = rng.choice([1, 2, 3, 5, 8, 16, 17])
    w = graph.tensor(x.dtype, (columns, depth) if trans_b else (depth, columns))
    c = graph.tensor(x.dtype, broadcastable(rng, (rows, columns)))
    scaled = rng.random() < 0.3
    (y,) = graph.emit(
        "Gemm",
        [x, w, c] if graph.opset < 11 or rng.random() < 0.7 else [x, w],
        transA=int(trans_a) or None,
        transB=int(trans_b) or None,
        alpha=0.5 if scaled and x.dtype.kind == "f" else None,
        beta=2.0 if scaled and x.dtype.kind == "f" else None,
        broadcast=1,
    )
    return y


@recipe("MatMulInteger", "QLinearMatMul")
def integer_matmul(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    x = graph.tensor(graph.dtypes(op_type), least=2, most=4)
    kinds = graph.dtypes(op_type, 1 if op_type == "MatMulInteger" else 3)
    if x.sizes[-1] == 0:
        raise RejectedError("ONNX Runtime leaves products of nothing unwritten")
    w = _right(graph, x, graph.pick_dtype(kinds))
    zeros = [graph.parameter(np.array(rng.randint(0, 5), t.dtype)) for t in (x, w)]
    if op_type == "MatMulInteger":
        graph.emit(op_type, [x, w, *zeros[: rng.randint(0, 2)]])
        return
    scales = [graph.parameter(np.array(rng.randint(1, 9) / 16, np.float32)) for _ in range(3)]
    zero = graph.parameter(np.array(rng.randint(0, 5), x.dtype))
    graph.emit(op_type, [x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], zero])


@recipe("Einsum")
def einsum(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    sizes = {letter: rng.randint(1, 5) for letter in "abcd"}
    dtype = graph.pick_dtype(graph.dtypes(op_type))
    terms = ["".join(rng.sample("abcd", rng.randint(1, 3))) for _ in range(rng.randint(1, 2))]
    operands = [graph.tensor(dtype, tuple(sizes[c] for c in term)) for term in terms]
    letters = sorted(set("".join(terms)))
    result = "".join(rng.sample(letters, rng.randint(0, len(letters))))
    equation = ",".join(terms) + (f"->{result}" if rng.random() < 0.8 else "")
    graph.emit(op_type, operands, equation=equation)


@recipe("BatchNormalization")
def batch_normalization(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=2, most=5)
    add_batch_normalization(graph, x)


def add_batch_normalization(graph: RandomGraph, x: Tensor) -> Tensor:
    """Adds a batch normalisation as at inference; returns its result."""
    per_channel = (x.sizes[1],)
    parts = [graph.tensor(x.dtype, per_channel) for _ in range(3)]
    variance = graph.tensor(x.dtype, per_channel, style="positive")
    test = 1 if graph.opset < 7 else None
    epsilon = maybe(graph, 0.01)
    (y,) = graph.emit("BatchNormalization", [x, *parts, variance], is_test=test, epsilon=epsilon)
    return y


@recipe("InstanceNormalization")
def instance_normalization(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=3, most=5)
    parts = [graph.tensor(x.dtype, (x.sizes[1],)) for _ in range(2)]
    graph.emit(op_type, [x, *parts], epsilon=maybe(graph, 0.01))


@recipe("GroupNormalization")
def group_normalization(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=3, most=5)
    channels = x.sizes[1]
    groups = graph.rng.choice([g for g in range(1, channels + 1) if channels % g == 0] or [1])
    size = channels if graph.opset >= 21 else groups
    parts = [graph.tensor(x.dtype, (size,)) for _ in range(2)]
    graph.emit(op_type, [x, *parts], num_groups=groups)


@recipe("LayerNormalization", "RMSNormalization")
def layer_normalization(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1, most=4)
    axis = some_axis(graph, x.rank)
    shape = x.sizes[axis:] if graph.rng.random() < 0.8 else x.sizes[-1:]
    parts = [graph.tensor(x.dtype, shape)]
    if op_type == "LayerNormalization" and graph.rng.random() < 0.6:
        parts.append(graph.tensor(x.dtype, shape))
    outputs = graph.rng.choice([1, 1, 3]) if op_type == "LayerNormalization" else 1
    graph.emit(op_type, [x, *parts], outputs, axis=axis, epsilon=maybe(graph, 0.01))


@recipe("LRN")
def lrn(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=3, most=4)
    size = graph.rng.choice([1, 3, 5, 2])
    graph.emit(op_type, [x], size=size, alpha=maybe(graph, 0.1), bias=maybe(graph, 2.0))


@recipe("Det")
def det(graph: RandomGraph, op_type: str) -> None:
    size = graph.rng.randint(1, 4)
    stack = (graph.rng.randint(1, 3),) if graph.rng.random() < 0.4 else ()
    graph.emit(op_type, [graph.tensor(graph.dtypes(op_type), (*stack, size, size))])


@recipe("Attention")
def attention(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    batch, heads, shared = rng.randint(1, 2), rng.choice([1, 2, 4]), rng.choice([1, 1, 2])
    length, memory, depth = rng.randint(1, 5), rng.randint(1, 6), rng.choice([2, 4, 8])
    groups = heads // shared if heads % shared == 0 else heads
    q = graph.tensor(graph.dtypes(op_type), (batch, heads, length, depth))
    k = graph.tensor(q.dtype, (batch, groups, memory, depth))
    v = graph.tensor(q.dtype, (batch, groups, memory, rng.choice([depth, 3])))
    mask = []
    if rng.random() < 0.4:
        kind = rng.choice([q.dtype, np.dtype(np.bool_)])
        mask = [graph.tensor(kind, rng.choice([(length, memory), (batch, 1, length, memory)]))]
    causal = maybe(graph, rng.randint(0, 1), 0.4)
    softcap = maybe(graph, 2.0, 0.2)
    graph.emit(op_type, [q, k, v, *mask], is_causal=causal, softcap=softcap)


@recipe("RotaryEmbedding")
def rotary_embedding(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    batch, heads, length, depth = rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 4), 4
    x = graph.tensor(graph.dtypes(op_type), (batch, heads, length, depth))
    tables = [graph.tensor(x.dtype, (8, depth // 2)) for _ in range(2)]
    where = np.array([rng.randint(0, 7) for _ in range(batch * length)], np.int64)
    places = graph.parameter(where.reshape(batch, length), 0.5)
    graph.emit(op_type, [x, *tables, places], interleaved=maybe(graph, rng.randint(0, 1)))
