"""Ops of the interpreter tier: their results equal ONNX Runtime's, and they are fast enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto

from byoc_mlir.interpreter.schemas import (
    Schema,
    Types,
    name_of,
    opset_of,
    schema_of,
    value_of,
)

_OPSETS = range(7, 29)
"""Versions of the default domain whose ops were compared with ONNX Runtime's."""

_FLOAT = frozenset((TensorProto.FLOAT,))
_FLOATS = _FLOAT | {TensorProto.DOUBLE}
_INTEGERS = frozenset((TensorProto.INT64, TensorProto.INT32))
_NUMBERS = _FLOATS | _INTEGERS
_BOOL = frozenset((TensorProto.BOOL,))
_ALL = _NUMBERS | _BOOL | {TensorProto.UINT8}

_Attributes = Mapping[str, Any]
_Check = Callable[[NodeProto, _Attributes, Types], str]
"""Check that returns why a node is not supported, from its attributes and the types of its
operands; "" if it is."""


@dataclass(frozen=True)
class TierOp:
    """Forms of an op that the tier supports.

    Attributes:
        types: types of the first operand; ONNX's schema restricts the types of the others.
        attributes: names of attributes that may have any value; all others must have their default.
        refused: additional check.
    """

    types: Set[int]
    attributes: Set[str] = frozenset()
    refused: _Check = lambda node, attributes, types: ""


def _op(types: Set[int], attributes: str = "", **others: Any) -> TierOp:
    return TierOp(types, frozenset(attributes.split()), **others)


def _without(*operands: int, results: int) -> _Check:
    """Returns a check for nodes without these operands, and with at most so many results."""

    def check(node: NodeProto, attributes: _Attributes, types: Types) -> str:
        for place in operands:
            if place < len(types) and types[place] is not None:
                return f"operand {place}"
        return f"result {results}" if len(node.output) > results else ""

    return check


_one_result = _without(results=1)


def _no_statistics(node: NodeProto, attributes: _Attributes, types: Types) -> str:
    return "a mean or deviation" if any(node.output[1:3]) else ""


def _statistics(node: NodeProto, attributes: _Attributes, types: Types) -> str:
    if len({*types} - {None}) > 1:
        return "types that differ"
    return _one_result(node, attributes, types)


def _recurrent(node: NodeProto, attributes: _Attributes, types: Types) -> str:
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    usual = _ACTIVATIONS[node.op_type] * directions
    if attributes.get("activations", usual) != usual:
        return "activations"
    if len(types) > 7 and types[7] is not None:
        return "peepholes"
    return ""


_ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"]}


def _mod(node: NodeProto, attributes: _Attributes, types: Types) -> str:
    return "" if types[0] in _INTEGERS or attributes.get("fmod") else "remainders of floats"


def _cast(node: NodeProto, attributes: _Attributes, types: Types) -> str:
    to_bytes = attributes["to"] == TensorProto.UINT8 and types[0] in _FLOATS
    return "bytes of floats" if to_bytes else ""


def _pad(node: NodeProto, attributes: _Attributes, types: Types) -> str:
    mode = attributes.get("mode", "constant")
    return "" if mode in ("constant", "edge", "reflect") else f"mode {mode}"


def _scatter(node: NodeProto, attributes: _Attributes, types: Types) -> str:
    combines = attributes.get("reduction", "none") != "none"
    return "what is combined" if combines and types[0] not in _NUMBERS else ""


def _attention(node: NodeProto, attributes: _Attributes, types: Types) -> str:
    if types[2] != types[0]:
        return "types that differ"
    if attributes.get("softmax_precision", types[0]) != types[0] or attributes.get("scale") == 0:
        return "another precision, or a scale of 0"
    return _without(6, results=3)(node, attributes, types)


_REDUCED = "axes keepdims"
_REDUCED_OR_NOT = f"{_REDUCED} noop_with_empty_axes"
_RECURRENT = "direction hidden_size layout activations"
_WINDOW = "auto_pad kernel_shape strides pads dilations"

TIER_OPS: Mapping[str, TierOp] = {
    # element-wise ops
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), _op(_NUMBERS)),
    **dict.fromkeys(("Neg", "Abs"), _op(_NUMBERS)),
    "Pow": _op(_FLOATS),
    "Mod": _op(_NUMBERS, "fmod", refused=_mod),
    **dict.fromkeys(("Sum", "Mean"), _op(_FLOAT)),
    **dict.fromkeys(("Max", "Min"), _op(_NUMBERS)),
    **dict.fromkeys(("Sqrt", "Exp", "Log", "Reciprocal", "Floor", "Ceil", "Round"), _op(_FLOATS)),
    **dict.fromkeys(("Sin", "Cos", "Tan", "Sinh", "Cosh", "Atan", "Asinh"), _op(_FLOAT)),
    **dict.fromkeys(("Tanh", "Sigmoid", "Relu", "Softplus", "Softsign"), _op(_FLOAT)),
    **dict.fromkeys(("Erf", "HardSwish", "PRelu"), _op(_FLOAT)),
    **dict.fromkeys(("LeakyRelu", "Elu", "ThresholdedRelu"), _op(_FLOAT, "alpha")),
    "HardSigmoid": _op(_FLOAT, "alpha beta"),
    "Selu": _op(_FLOAT, "alpha gamma"),
    "Gelu": _op(_FLOAT, "approximate"),
    "com.microsoft.Gelu": _op(_FLOAT),
    "com.microsoft.BiasGelu": _op(_FLOAT),
    "com.microsoft.FastGelu": _op(_FLOAT),
    "com.microsoft.QuickGelu": _op(_FLOAT, "alpha"),
    "Clip": _op(_NUMBERS, "min max"),
    "Sign": _op(_NUMBERS),
    "Equal": _op(_NUMBERS | _BOOL),
    **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"), _op(_NUMBERS)),
    **dict.fromkeys(("And", "Or", "Xor", "Not"), _op(_BOOL)),
    "IsNaN": _op(_FLOATS),
    "IsInf": _op(_FLOATS, "detect_negative detect_positive"),
    "Where": _op(_BOOL),
    "Cast": _op(_ALL, "to saturate", refused=_cast),
    "Dropout": _op(_FLOAT, "ratio seed", refused=_without(2, results=1)),
    # data movement, and sizes
    "Identity": _op(_ALL),
    "Constant": _op(_ALL, "value value_int value_ints value_float value_floats"),
    "ConstantOfShape": _op(_INTEGERS, "value"),
    "Shape": _op(_ALL, "start end"),
    "Size": _op(_ALL),
    "Range": _op(_INTEGERS),
    "Reshape": _op(_ALL, "allowzero"),
    **dict.fromkeys(("Squeeze", "Unsqueeze"), _op(_ALL, "axes")),
    **dict.fromkeys(("Flatten", "Concat"), _op(_ALL, "axis")),
    "Transpose": _op(_ALL, "perm"),
    "Expand": _op(_ALL),
    "Tile": _op(_ALL),
    "Slice": _op(_ALL, "starts ends axes"),
    "Split": _op(_ALL, "axis split num_outputs"),
    "Pad": _op(_ALL, "pads value mode", refused=_pad),
    "Trilu": _op(_ALL, "upper"),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _op(_FLOAT, "blocksize mode")),
    # indices in tensors
    **dict.fromkeys(("Gather", "GatherElements"), _op(_ALL, "axis")),
    "GatherND": _op(_ALL, "batch_dims"),
    "ScatterElements": _op(_ALL, "axis reduction", refused=_scatter),
    "ScatterND": _op(_ALL, "reduction", refused=_scatter),
    "NonZero": _op(_NUMBERS | _BOOL),
    "TopK": _op(_NUMBERS, "axis k largest"),
    **dict.fromkeys(("ArgMax", "ArgMin"), _op(_NUMBERS, "axis keepdims select_last_index")),
    "CumSum": _op(_NUMBERS, "exclusive reverse"),
    "NonMaxSuppression": _op(_FLOAT, "center_point_box"),
    # reductions and normalisations
    **dict.fromkeys(("ReduceSum", "ReduceProd"), _op(_NUMBERS, _REDUCED_OR_NOT)),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), _op(_NUMBERS, _REDUCED_OR_NOT)),
    "ReduceMean": _op(_FLOAT, _REDUCED_OR_NOT),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSumSquare"), _op(_FLOAT, _REDUCED)),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), _op(_FLOAT, _REDUCED)),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _op(_FLOAT, "axis")),
    "LayerNormalization": _op(_FLOAT, "axis epsilon", refused=_one_result),
    "RMSNormalization": _op(_FLOAT, "axis epsilon"),
    "SimplifiedLayerNormalization": _op(_FLOAT, "axis epsilon", refused=_one_result),
    **dict.fromkeys(
        (
            "com.microsoft.SkipLayerNormalization",
            "com.microsoft.SkipSimplifiedLayerNormalization",
        ),
        _op(_FLOAT, "epsilon", refused=_no_statistics),
    ),
    "InstanceNormalization": _op(_FLOAT, "epsilon"),
    "BatchNormalization": _op(_FLOAT, "epsilon momentum", refused=_statistics),
    # layers
    "MatMul": _op(_FLOAT),
    "Gemm": _op(_FLOAT, "alpha beta transA transB"),
    "com.microsoft.MatMulNBits": _op(_FLOAT, "K N bits block_size accuracy_level"),
    "com.microsoft.GatherBlockQuantized": _op(
        frozenset((TensorProto.UINT8,)), "bits block_size gather_axis quantize_axis"
    ),
    "Attention": _op(
        _FLOAT,
        "is_causal kv_num_heads q_num_heads scale softcap softmax_precision",
        refused=_attention,
    ),
    "com.microsoft.GroupQueryAttention": _op(
        _FLOAT,
        "num_heads kv_num_heads do_rotary rotary_interleaved scale softcap local_window_size"
        " smooth_softmax",
        refused=_without(9, *range(12, 16), results=3),
    ),
    "com.microsoft.MultiHeadAttention": _op(
        _FLOAT,
        "num_heads mask_filter_value scale unidirectional",
        refused=_without(8, 9, results=3),
    ),
    "com.microsoft.Attention": _op(
        _FLOAT,
        "num_heads mask_filter_value qkv_hidden_sizes scale unidirectional",
        refused=_without(6, results=2),
    ),
    **dict.fromkeys(
        ("RotaryEmbedding", "com.microsoft.RotaryEmbedding"),
        _op(_FLOAT, "interleaved num_heads rotary_embedding_dim"),
    ),
    "Conv": _op(_FLOAT, f"{_WINDOW} group"),
    "ConvTranspose": _op(_FLOAT, f"{_WINDOW} group output_padding output_shape"),
    "MaxPool": _op(_FLOAT, f"{_WINDOW} ceil_mode", refused=_one_result),
    "AveragePool": _op(_FLOAT, f"{_WINDOW} ceil_mode count_include_pad"),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), _op(_FLOAT)),
    "LSTM": _op(_FLOAT, _RECURRENT, refused=_recurrent),
    "GRU": _op(_FLOAT, f"{_RECURRENT} linear_before_reset", refused=_recurrent),
}
"""Supported ops by their names, as in `schemas.name_of`."""


def unknown(model: ModelProto) -> str:
    """Returns why the tier does not support a model, or "" if it does.

    Args:
        model: a model that ONNX's checker accepts.

    Returns:
        The first unsupported node, type or feature, with the reason.
    """
    return next(_problems(model), "")


def _problems(model: ModelProto) -> Iterator[str]:
    graph = model.graph
    opset = opset_of(model)
    if opset not in _OPSETS:
        yield f"version {opset} of the default domain"
    if model.functions or graph.sparse_initializer:
        yield "functions, or sparse tensors"
    types: dict[str, int] = {tensor.name: tensor.data_type for tensor in graph.initializer}
    types |= {value.name: value.type.tensor_type.elem_type for value in graph.input}
    yield from _other_types(types)
    for node in graph.node:
        label = f"{node.op_type} {node.name or next(iter(node.output), '')}"
        schema = schema_of(name_of(node), opset)
        if schema is None or name_of(node) not in TIER_OPS:
            yield f"{label}: the op is not known"
            return
        operands = [types.get(name, 0) if name else None for name in node.input]
        variables = schema.variables(operands)
        if variables is None:
            yield f"{label}: the types {operands} of operands"
            return
        for problem in _of_node(node, schema, operands):
            yield f"{label}: {problem}"
        made = schema.made(node, variables)
        yield from _other_types(made)
        types |= made


def _other_types(types: Mapping[str, int]) -> Iterator[str]:
    for name, kind in types.items():
        if kind not in _ALL:
            yield f"{name} is of type {kind}"


def _of_node(node: NodeProto, schema: Schema, types: Types) -> Iterator[str]:
    known = TIER_OPS[name_of(node)]
    if types and types[0] not in known.types:
        yield f"the type {types[0]}"
    attributes = {item.name: value_of(item) for item in node.attribute}
    for name, value in attributes.items():
        if name not in known.attributes and value != schema.defaults.get(name):
            yield f"{name}={value}"
    reason = known.refused(node, attributes, types)
    if reason:
        yield reason
