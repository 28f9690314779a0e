"""Normalisations that the convolutions before them take over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, helper

from byoc_mlir.tensors import Array


def folded(
    graph: GraphProto, tensors: Mapping[str, Array]
) -> tuple[list[NodeProto], Mapping[str, Array]]:
    """The nodes and constants of a graph, without normalisations of what a convolution alone gives
    them.

    ```
    y = Conv(x, w, b)                          z = Conv(x, w', b')
    z = BatchNormalization(y, s, t, m, v)
    ```

    with w' = w f, b' = (b - m) f + t and f = s / sqrt(v + epsilon), where all of them are constants
    of `f32` that no input replaces.

    Args:
        graph: its nodes are in an order in which they can run.
        tensors: its initializers by name.
    """
    nodes = list(graph.node)
    if any(item.type == AttributeProto.GRAPH for node in nodes for item in node.attribute):
        return nodes, tensors  # nodes in it may read any of the names
    outputs, inputs = ({info.name for info in infos} for infos in (graph.output, graph.input))
    readers = Counter(name for node in nodes for name in node.input)
    readers.update(outputs)
    known = {name for name, tensor in tensors.items() if tensor.dtype == np.float32} - inputs
    made = {name: node for node in nodes for name in node.output}
    found = dict(tensors)
    merged: dict[str, NodeProto | None] = {}
    for norm in nodes:
        convolution = made.get(norm.input[0]) if _is_norm(norm) else None
        if convolution is None or convolution.op_type != "Conv" or convolution.domain:
            continue
        operands = {*convolution.input[1:], *norm.input[1:]} - {""}
        if operands <= known and readers[norm.input[0]] == 1:
            merged[norm.input[0]] = _merged(convolution, norm, found)
            merged[norm.output[0]] = None
    changed = (merged.get(node.output[0], node) for node in nodes)
    return [node for node in changed if node is not None], found


def _is_norm(node: NodeProto) -> bool:
    is_training = any(item.name == "training_mode" and item.i for item in node.attribute)
    is_alone = len(node.output) == 1 and not is_training
    return node.op_type == "BatchNormalization" and not node.domain and is_alone


def _merged(convolution: NodeProto, norm: NodeProto, tensors: dict[str, Array]) -> NodeProto:
    """A convolution with the result of a normalisation; its weights and bias go to `tensors`."""
    weights = tensors[convolution.input[1]]
    scale, shift, mean, variance = (tensors[name] for name in norm.input[1:])
    epsilon = next((item.f for item in norm.attribute if item.name == "epsilon"), 1e-5)
    factor = scale / np.sqrt(variance.astype(np.float64) + epsilon)
    has_bias = len(convolution.input) > 2 and convolution.input[2]
    bias = tensors[convolution.input[2]] if has_bias else np.zeros_like(mean)
    result = norm.output[0]
    names = f"{result}/weights", f"{result}/bias"
    column = (-1, *[1] * (weights.ndim - 1))
    tensors[names[0]] = (weights * factor.reshape(column)).astype(np.float32)
    tensors[names[1]] = ((bias - mean) * factor + shift).astype(np.float32)
    merged = helper.make_node("Conv", [convolution.input[0], *names], [result])
    merged.attribute.extend(convolution.attribute)
    return merged
