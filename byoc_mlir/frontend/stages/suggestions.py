"""Cheap tests that suggest that a model is split, at data-dependent shapes or around strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import onnx

from byoc_mlir.frontend.graphs import standard_name
from byoc_mlir.frontend.structures import tensor_type_of

_STRING = onnx.TensorProto.STRING

AXIS_OF_COUNT = {"Compress": None, "NonMaxSuppression": 0, "NonZero": 1}
"""Ops with a data-dependent output size, by name, with its axis; `None` stands for the attribute
`axis`."""

_REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)

_SIZE_OPERANDS: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(_REDUCTIONS, (1,)),
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "MaxUnpool": (2,),
    "NonMaxSuppression": (2,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
"""Operands that must be constant, or follow from shapes, when the node is imported.

They are lengths, positions, counts, and axes.
"""


def may_have_stages(model: onnx.ModelProto) -> bool:
    """True if a single node suggests a split; this cheap test is false for most models."""
    graph = model.graph
    known = {tensor.name for tensor in graph.initializer}
    known.update(name for node in graph.node if node.op_type == "Constant" for name in node.output)
    return not sizes_read(graph.node) <= known or finds_sizes(graph.node)


def finds_sizes(nodes: Iterable[onnx.NodeProto]) -> bool:
    """True if one of the nodes determines a size when it runs."""
    return any(finds_its_size(node) or collects(node) for node in nodes)


def finds_its_size(node: onnx.NodeProto) -> bool:
    """True if the node has an output of data-dependent shape; import refuses a node with several
    outputs.
    """
    is_dynamic = node.op_type in AXIS_OF_COUNT and node.domain in ("", "ai.onnx")
    return is_dynamic and len(node.output) == 1 and bool(node.output[0])


def collects(node: onnx.NodeProto) -> bool:
    """True if the node is a valid loop whose stacked rows are used."""
    is_loop = node.op_type == "Loop" and node.domain in ("", "ai.onnx")
    bodies = [attribute.g for attribute in node.attribute if attribute.name == "body"]
    is_valid = bool(node.input and bodies) and len(node.output) < len(bodies[0].output)
    return is_loop and is_valid and any(node.output[max(len(node.input) - 2, 0) :])


def sizes_read(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Returns the operands that nodes read as sizes."""
    return {
        node.input[place]
        for node in nodes
        if node.op_type in _SIZE_OPERANDS and not standard_name(node.domain)
        for place in _SIZE_OPERANDS[node.op_type]
        if place < len(node.input) and node.input[place]
    }


def mentions_strings(model: onnx.ModelProto) -> bool:
    """True if an input, a constant or an attribute may be a string."""
    graph = model.graph
    return (
        any(tensor_type_of(value.type).elem_type == _STRING for value in graph.input)
        or any(tensor.data_type == _STRING for tensor in graph.initializer)
        or any(map(_makes_strings, graph.node))
    )


def _makes_strings(node: onnx.NodeProto) -> bool:
    for item in node.attribute:
        if item.name in ("value_string", "value_strings", "values_strings", "values_tensor"):
            return True
        number = item.i if item.name in ("to", "dtype") else None
        if _STRING in (item.t.data_type, number):
            return True
    return False


def has_loops(model: onnx.ModelProto) -> bool:
    """True if the graph has a `Loop`."""
    return any(node.op_type == "Loop" for node in model.graph.node)


def may_have_strings(model: onnx.ModelProto) -> bool:
    """True if the model mentions strings, or has ops of `ai.onnx.ml`, which may have labels."""
    return mentions_strings(model) or any(node.domain == "ai.onnx.ml" for node in model.graph.node)
