"""Folding of normalisations and clips into the convolutions before them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Set

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, helper

from byoc_mlir.tensors import Array

LEAST, MOST = "least", "most"
"""Attributes of a folded Conv: lower and upper limit of its result, if it has them."""


def folded(
    graph: GraphProto, tensors: Mapping[str, Array]
) -> tuple[list[NodeProto], Mapping[str, Array]]:
    """Folds BatchNormalization, Relu and Clip into convolutions; returns nodes and constants.

    ```
    y = Conv(x, w, b)                        r = Conv<least = 0>(x, w', b')
    z = BatchNormalization(y, s, t, m, v)
    r = Relu(z)
    ```

    Here w' = w f, b' = (b - m) f + t and f = s / sqrt(v + epsilon). All of them have to be
    constants of `f32` that no input overrides, and y and z must have no other users.

    Args:
        graph: graph with its nodes in topological order.
        tensors: its initializers by name.
    """
    nodes = list(graph.node)
    if any(item.type == AttributeProto.GRAPH for node in nodes for item in node.attribute):
        return nodes, tensors  # nodes of the subgraph may read any of the names
    outputs, inputs = ({info.name for info in infos} for infos in (graph.output, graph.input))
    known = {name for name, tensor in tensors.items() if tensor.dtype == np.float32} - inputs
    found = dict(tensors)
    taken = inputs.union(tensors, *(node.output for node in nodes))

    def with_norm(convolution: NodeProto, norm: NodeProto) -> NodeProto | None:
        operands = {*convolution.input[1:], *norm.input[1:]} - {""}
        return _normalised(convolution, norm, found, taken) if operands <= known else None

    def with_limits(convolution: NodeProto, limits: NodeProto) -> NodeProto | None:
        names = {*limits.input[1:]} - {""}
        return _limited(convolution, limits, found) if names <= known else None

    nodes = _merge(nodes, outputs, _is_norm, with_norm)
    nodes = _merge(nodes, outputs, _has_limits, with_limits)
    read = outputs.union(*(node.input for node in nodes))
    return nodes, {name: tensor for name, tensor in found.items() if name in read}


_Merge = Callable[[NodeProto, NodeProto], NodeProto | None]


def _merge(
    nodes: list[NodeProto], outputs: Set[str], follows: Callable[[NodeProto], bool], merge: _Merge
) -> list[NodeProto]:
    """Merges convolutions with nodes that follow them; returns the remaining nodes.

    Args:
        outputs: names of results that have users elsewhere.
        follows: returns whether a node is of a kind that can be merged.
        merge: returns the merged node, or `None` if both have to stay.
    """
    readers = Counter(name for node in nodes for name in node.input)
    readers.update(outputs)
    made = {name: node for node in nodes for name in node.output}
    merged: dict[str, NodeProto | None] = {}
    for node in nodes:
        before = made.get(node.input[0]) if follows(node) else None
        if before is None or before.op_type != "Conv" or before.domain:
            continue
        both = merge(before, node) if readers[node.input[0]] == 1 else None
        if both is not None:
            merged |= {node.input[0]: both, node.output[0]: None}
    changed = (merged.get(node.output[0], node) for node in nodes)
    return [node for node in changed if node is not None]


def _is_norm(node: NodeProto) -> bool:
    is_training = any(item.name == "training_mode" and item.i for item in node.attribute)
    is_alone = len(node.output) == 1 and not is_training
    return node.op_type == "BatchNormalization" and not node.domain and is_alone


def _has_limits(node: NodeProto) -> bool:
    return node.op_type in ("Relu", "Clip") and not node.domain


def _normalised(
    convolution: NodeProto, norm: NodeProto, tensors: dict[str, Array], taken: Set[str]
) -> NodeProto | None:
    """Returns a convolution that includes a normalisation, or `None`.

    Its weights and bias go to `tensors`, under new names; `None` if these are taken.
    """
    weights, *biases = (tensors[name] for name in convolution.input[1:] if name)
    scale, shift, mean, variance = (tensors[name] for name in norm.input[1:])
    vectors = scale, shift, mean, variance, *biases
    if any(vector.shape != weights.shape[:1] for vector in vectors):
        return None  # the model is wrong
    epsilon = next((item.f for item in norm.attribute if item.name == "epsilon"), 1e-5)
    factor = scale / np.sqrt(variance.astype(np.float64) + epsilon)
    bias = (sum(biases) - mean) * factor + shift
    names = f"{norm.output[0]}/weights", f"{norm.output[0]}/bias"
    if not taken.isdisjoint(names):
        return None
    columns = factor.reshape(-1, *[1] * (weights.ndim - 1))
    tensors[names[0]] = weights * columns.astype(weights.dtype)
    tensors[names[1]] = bias.astype(np.float32)
    merged = helper.make_node("Conv", [convolution.input[0], *names], norm.output)
    merged.attribute.extend(convolution.attribute)
    return merged


def _limited(
    convolution: NodeProto, limits: NodeProto, tensors: Mapping[str, Array]
) -> NodeProto | None:
    """Returns a convolution that includes a Relu or Clip, or `None` if a limit is not a scalar.

    In old versions Clip's limits are attributes.
    """
    found = {LEAST: 0.0} if limits.op_type == "Relu" else {}
    named = {item.name: item.f for item in limits.attribute}
    found |= {new: named[old] for old, new in (("min", LEAST), ("max", MOST)) if old in named}
    for name, place in zip((LEAST, MOST), limits.input[1:], strict=False):
        if place and tensors[place].size != 1:
            return None
        if place:
            found[name] = float(tensors[place].item())
    merged = helper.make_node("Conv", convolution.input, limits.output)
    merged.attribute.extend(convolution.attribute)
    merged.attribute.extend(helper.make_attribute(name, value) for name, value in found.items())
    return merged
