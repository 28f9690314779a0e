"""Random models: graphs of random nodes, and layers as networks have them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import onnx

from byoc_mlir.frontend.files.check import MAX_OPSET
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import add_node, importable_ops
from byoc_mlir.testing.samples.onnx_nodes.tensor import DOMAINS, ML, RejectedError
from byoc_mlir.testing.samples.onnx_nodes.values import Style
from byoc_mlir_fuzz.network import add_block

_OPSETS = (*range(7, 28), *range(11, 24), *range(13, 23))
_ML_VERSIONS = (1, 2, 3, 3, 4, 4, 5)
_SIZES = (2, 3, 4, 5, 6, 8, 12)
_STYLES: tuple[Style, ...] = ("plain", "plain", "plain", "integral", "extreme")
_SUMS = (
    *("Reduce", "Pool", "Conv", "MatMul", "Gemm", "Norm", "LRN", "Sum", "Mean", "Cum", "Einsum"),
    *("FT", "Softmax", "Loss", "Attention", "RNN", "LSTM", "GRU", "Sample", "Resize", "Det"),
    *("Roi", "Scatter", "Quantize", "Ada", "Momentum", "Grid", "Upsample", "Col2Im", "Embedding"),
    *("Imputer", "If", "Loop", "Scan", "Tree", "SVM", "Linear"),
)
"""Parts of the names of ops that sum, in an order of their choice."""


def random_graph(rng: Random, sizes: Sequence[int] = _SIZES) -> tuple[RandomGraph, onnx.ModelProto]:
    """Returns a random graph, valid as far as ONNX's shape inference can tell, and its model.

    Args:
        sizes: numbers of nodes or blocks that are drawn, besides graphs of one node.
    """
    while True:
        graph = _grown(rng, sizes)
        model = graph.model()
        if model.graph.output:
            return graph, model


def _grown(rng: Random, sizes: Sequence[int]) -> RandomGraph:
    opset = rng.randint(1, MAX_OPSET) if rng.random() < 0.1 else rng.choice(_OPSETS)
    opset = min(opset, MAX_OPSET)
    style: Style = rng.choice(_STYLES)
    domains = {**DOMAINS, ML: rng.choice(_ML_VERSIONS)}
    graph = RandomGraph(rng, opset, style, domains=domains)
    if rng.random() < 0.4:
        _add_one(graph)
        return graph
    as_network = rng.random() < 0.5
    for _ in range(rng.choice(sizes)):
        if as_network and rng.random() < 0.75:
            _add_block(graph)
        else:
            domain, name = rng.choice(importable_ops())
            add_node(graph, name, domain)
    return graph


def _add_one(graph: RandomGraph) -> None:
    """Adds the only node, which may read the largest values unless it sums them."""
    domain, name = graph.rng.choice(importable_ops())
    if graph.style == "extreme" and not any(word in name for word in _SUMS):
        graph.style = "limits"
    add_node(graph, name, domain)


def _add_block(graph: RandomGraph) -> None:
    try:
        with graph.attempt():
            add_block(graph)
    except RejectedError:
        return
