"""Ops of `com.microsoft`: activations, normalisations, matmuls and embeddings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from byoc_mlir.tensors import Array
from byoc_mlir.testing.samples.onnx_nodes.choices import finite, maybe
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import MICROSOFT, Tensor
from byoc_mlir.testing.samples.onnx_nodes.values import Dtype, Shape
from byoc_mlir.testing.samples.onnx_nodes.window import image_of, random_window

F32 = np.dtype(np.float32)


def add(
    graph: RandomGraph,
    op_type: str,
    inputs: list[Tensor | None],
    *types: tuple[Dtype, Shape | None] | None,
    **attributes: Any,
) -> list[Tensor]:
    """Adds a node and returns its outputs; trailing inputs that are `None` are omitted."""
    while inputs[-1] is None:
        inputs.pop()
    return graph.emit_without_schema(op_type, inputs, types, MICROSOFT, **attributes)


def integers(
    graph: RandomGraph, least: int, most: int, shape: Shape, dtype: type[np.integer] = np.int32
) -> Tensor:
    """Returns a tensor of integers from `least` to `most`."""
    drawn = [graph.rng.randint(least, most) for _ in range(math.prod(shape))]
    return graph.parameter(np.array(drawn, dtype).reshape(shape), as_input=0.7)


def given(graph: RandomGraph, shape: Shape, probability: float = 0.5) -> Tensor | None:
    """Returns a tensor of plain values, or `None`."""
    if graph.rng.random() >= probability:
        return None
    return graph.tensor(F32, shape, style=finite(graph))


@recipe("Gelu", "QuickGelu", domain=MICROSOFT)
def activation(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(F32)
    alpha = maybe(graph, 1.0 + graph.rng.randint(0, 4) / 4) if op_type == "QuickGelu" else None
    add(graph, op_type, [x], (F32, x.sizes), alpha=alpha)


@recipe("BiasGelu", "FastGelu", domain=MICROSOFT)
def biased_activation(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(F32, least=1)
    bias = given(graph, x.sizes[-1:], 1.0 if op_type == "BiasGelu" else 0.5)
    add(graph, op_type, [x, bias], (F32, x.sizes))


@recipe("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_normalisation(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    batch, length, width = rng.randint(1, 3), rng.randint(0, 5), rng.choice([1, 2, 5, 16, 17])
    shape = (batch, length, width) if rng.random() < 0.7 else (length, width)
    skips = [shape, (length, width), (1, length, width)] if len(shape) == 3 else [shape]
    x, skip = (graph.tensor(F32, each, style=finite(graph)) for each in (shape, rng.choice(skips)))
    beta = [given(graph, (width,))] if op_type == "SkipLayerNormalization" else []
    gamma = graph.tensor(F32, (width,), style="positive")
    operands = [x, skip, gamma, *beta, given(graph, (width,))]
    sums = [None, None, (F32, shape)] if rng.random() < 0.5 else []
    add(graph, op_type, operands, (F32, shape), *sums, epsilon=rng.choice([1e-5, 1e-3]))


@recipe("FusedMatMul", domain=MICROSOFT)
def fused_matmul(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    rows, inner, columns = (rng.choice([1, 2, 3, 8, 17]) for _ in range(3))
    batch = tuple(rng.randint(1, 3) for _ in range(rng.randint(0, 2)))
    turned = [rng.random() < 0.4 for _ in range(2)]
    a = graph.tensor(F32, (*batch, *((inner, rows) if turned[0] else (rows, inner))))
    b = graph.tensor(F32, (*batch, *((columns, inner) if turned[1] else (inner, columns))))
    add(
        graph,
        op_type,
        [a, b],
        (F32, (*batch, rows, columns)),
        alpha=maybe(graph, rng.choice([0.5, -2.0])),
        transA=int(turned[0]),
        transB=int(turned[1]),
    )


_ACTIVATIONS = ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid")


@recipe("FusedGemm", domain=MICROSOFT)
def fused_gemm(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    rows, inner, columns = (rng.choice([1, 2, 3, 8, 17]) for _ in range(3))
    turned = [rng.random() < 0.4 for _ in range(2)]
    a = graph.tensor(F32, (inner, rows) if turned[0] else (rows, inner))
    b = graph.tensor(F32, (columns, inner) if turned[1] else (inner, columns))
    kind = rng.choice(_ACTIVATIONS)
    has_alpha, has_beta = kind in ("LeakyRelu", "HardSigmoid"), kind == "HardSigmoid"
    add(
        graph,
        op_type,
        [a, b, given(graph, (columns,))],
        (F32, (rows, columns)),
        activation=kind,
        activation_alpha=0.25 if has_alpha else None,
        activation_beta=0.5 if has_beta else None,
        alpha=maybe(graph, 0.5),
        beta=maybe(graph, 2.0),
        transA=int(turned[0]),
        transB=int(turned[1]),
    )


@recipe("FusedConv", domain=MICROSOFT)
def fused_conv(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    x = image_of(graph, [F32], 2)
    window = random_window(graph, 2)
    outputs = rng.choice([1, 4, 8, 16])
    weights = graph.tensor(F32, (outputs, x.sizes[1], *window.kernel), style=finite(graph))
    kind = rng.choice([*_ACTIVATIONS, "Clip"])
    parameters = {"LeakyRelu": [0.25], "HardSigmoid": [0.25, 0.5], "Clip": [-1.0, 1.5]}.get(kind)
    add(
        graph,
        op_type,
        [x, weights, given(graph, (outputs,))],
        (F32, None),
        activation=kind,
        activation_params=parameters,
        kernel_shape=window.kernel,
        strides=window.strides,
        dilations=window.dilations,
        pads=window.pads,
        auto_pad=window.auto_pad,
    )


@recipe("EmbedLayerNormalization", domain=MICROSOFT)
def embedding(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    batch, length, width = rng.randint(1, 3), rng.randint(1, 6), rng.choice([4, 8, 17])
    words, segments = rng.randint(1, 9), rng.randint(1, 2)

    def places(count: int, shape: Shape) -> Tensor:
        return integers(graph, 0, count - 1, shape)

    def table(rows: int) -> Tensor:
        return graph.tensor(F32, (rows, width), style="plain", fresh=True)

    has_segments = rng.random() < 0.6
    x = places(words, (batch, length))
    add(
        graph,
        op_type,
        [
            x,
            places(segments, (batch, length)) if has_segments else None,
            table(words),
            table(length + rng.randint(0, 2)),
            table(segments) if has_segments else None,
            graph.tensor(F32, (width,), style="positive"),
            graph.tensor(F32, (width,), style="plain"),
            places(2, (batch, length)),
        ],
        (F32, (batch, length, width)),
        (np.dtype(np.int32), (batch,)),
        epsilon=1e-5,
    )


@recipe("MatMulNBits", domain=MICROSOFT)
def matmul_of_bits(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    bits, block = rng.choice([4, 4, 8]), rng.choice([16, 32, 64])
    width, columns = rng.randint(1, 3 * block), rng.choice([1, 2, 7, 8, 16, 17])
    blocks = -(-width // block)
    rows = (*rng.choice([(), (2,), (0,)]), rng.randint(1, 4))
    scales = np.array([rng.randint(1, 9) / 64 for _ in range(columns * blocks)], np.float32)
    packed = _bytes(graph, columns, -(-blocks * bits // 8))
    floats = scales.reshape(columns, blocks) * 256 if bits == 4 else None
    points = rng.choice([None, packed, floats])
    groups = None
    if points is not packed and rng.random() < 0.3:  # which ONNX Runtime misreads beside bytes
        groups = (np.arange(width) // block).astype(np.int32)
    operands = [
        graph.tensor(F32, (*rows, width), style=finite(graph)),
        graph.constant(_bytes(graph, columns, blocks, block * bits // 8)),
        graph.constant(scales),
        *(None if each is None else graph.constant(each) for each in (points, groups)),
        given(graph, (columns,)),
    ]
    shape = (*rows, columns)
    add(graph, op_type, operands, (F32, shape), K=width, N=columns, block_size=block, bits=bits)


def _bytes(graph: RandomGraph, *shape: int) -> Array:
    return np.frombuffer(graph.rng.randbytes(math.prod(shape)), np.uint8).reshape(shape)
