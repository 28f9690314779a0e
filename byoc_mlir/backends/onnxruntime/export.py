"""Export of regions as ONNX models, with a table of one row for each op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import onnx
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.base import Rule
from byoc_mlir.backends.carried_nodes import renamed_node
from byoc_mlir.backends.json_graph import plain
from byoc_mlir.backends.region import constants_of, nodes_of, only_f32, outputs_of
from byoc_mlir.dialects.relay import nn
from byoc_mlir.dialects.relay.base import relay_name, shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.errors import BackendError

OPSET, IR_VERSION = 21, 10


class ExportedGraph:
    """An ONNX graph under construction; values are known by name."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def add(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Adds a node and returns the name of its result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def constant(self, array: Any) -> str:
        """Adds an initializer and returns its name."""
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name


Writer: TypeAlias = Callable[[ExportedGraph, Any, list[str]], str]
"""Adds nodes for an op whose operands have the given names; returns the name of the first
result.
"""


@dataclass(frozen=True)
class Export:
    """Writer of an op, and a rule that refuses forms without an equivalent in ONNX or ONNX
    Runtime.
    """

    write: Writer
    refuse: Rule = only_f32


def export_region(region: FuncOp) -> onnx.ModelProto:
    """Returns a region as an ONNX model; inputs and outputs are in the region's order."""
    graph = ExportedGraph()
    names: dict[SSAValue, str] = {value: f"in{i}" for i, value in enumerate(region.args)}
    inputs = [_described(value, names[value]) for value in region.args]
    names |= {op.output: graph.constant(op.array) for op in constants_of(region)}
    opsets = {"": OPSET}
    for op in nodes_of(region):
        if isinstance(op, OnnxNodeOp):
            graph.nodes.append(renamed_node(op, names, f"v{len(graph.nodes)}"))
            opsets.setdefault(op.domain.data, op.opset.value.data)
            continue
        operands = [names[operand] for operand in op.operands]
        names[op.results[0]] = EXPORTS[relay_name(op)].write(graph, op, operands)
    outputs = [
        _described(value, graph.add("Identity", [names[value]])) for value in outputs_of(region)
    ]
    made = helper.make_graph(graph.nodes, region.sym_name.data, inputs, outputs, graph.initializers)
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(made, opset_imports=imports, ir_version=IR_VERSION)


def element_type(value: SSAValue) -> int | None:
    """Returns ONNX's number of a tensor's element type, or `None` if ONNX has no such type."""
    try:
        return helper.np_dtype_to_tensor_dtype(numpy_dtype(tensor_type(value).element_type))
    except (ValueError, KeyError, BackendError):
        return None


def _described(value: SSAValue, name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, cast(int, element_type(value)), shape_of(value))


def _same(op_type: str, **attributes: str) -> Export:
    """Exports an op as one node with the same operands.

    Args:
        attributes: names of `relay` properties by names of ONNX attributes.
    """

    def write(graph: ExportedGraph, op: Any, operands: list[str]) -> str:
        values = {ours: plain(getattr(op, theirs)) for ours, theirs in attributes.items()}
        return graph.add(op_type, operands, **values)

    return Export(write)


def _reduction(op_type: str) -> Export:
    def write(graph: ExportedGraph, op: Any, operands: list[str]) -> str:
        axes = plain(op.axis) or range(len(shape_of(op.data)))
        axis = graph.constant(np.array(list(axes), np.int64))
        return graph.add(op_type, [*operands, axis], keepdims=plain(op.keepdims))

    return Export(write)


def _with_shape(op_type: str) -> Export:
    """Exports an op that gives its data the shape of the result."""

    def write(graph: ExportedGraph, op: Operation, operands: list[str]) -> str:
        shape = np.array(shape_of(op.results[0]), np.int64)
        return graph.add(op_type, [operands[0], graph.constant(shape)], **_ALLOW_ZERO[op_type])

    return Export(write, _of_any_type)


_ALLOW_ZERO: Mapping[str, Mapping[str, int]] = {"Reshape": {"allowzero": 1}, "Expand": {}}


def _dense(graph: ExportedGraph, op: nn.DenseOp, operands: list[str]) -> str:
    data, weight = operands
    return graph.add("MatMul", [data, graph.add("Transpose", [weight], perm=[1, 0])])


def _matmul(graph: ExportedGraph, op: nn.MatmulOp, operands: list[str]) -> str:
    flags = (op.transpose_a, op.transpose_b)
    for index, (value, flag) in enumerate(zip(op.operands, flags, strict=True)):
        if flag.value.data:
            *batch, rows, columns = range(len(shape_of(value)))
            permutation = [*batch, columns, rows]
            operands[index] = graph.add("Transpose", [operands[index]], perm=permutation)
    return graph.add("MatMul", operands)


def _bias_add(graph: ExportedGraph, op: nn.BiasAddOp, operands: list[str]) -> str:
    trailing = len(shape_of(op.data)) - op.positive_axis - 1
    shape = graph.constant(np.array([-1] + [1] * trailing, np.int64))
    return graph.add("Add", [operands[0], graph.add("Reshape", [operands[1], shape])])


def _clip(graph: ExportedGraph, op: Any, operands: list[str]) -> str:
    dtype = numpy_dtype(tensor_type(op.data).element_type)
    limits = [graph.constant(np.array(plain(limit), dtype)) for limit in (op.a_min, op.a_max)]
    return graph.add("Clip", [*operands, *limits])


def _cast(graph: ExportedGraph, op: Operation, operands: list[str]) -> str:
    return graph.add("Cast", operands, to=element_type(op.results[0]))


def _one_result(op: Operation) -> str | None:
    if any(result.uses.get_length() for result in op.results[1:]):
        return "only the first result can be used"
    if plain(cast(nn.BatchNormOp, op).axis) != 1:
        return "only axis 1 is supported"
    return only_f32(op)


def _rounds_down(op: Operation) -> str | None:
    return "ceil_mode is not supported" if plain(cast(Any, op).ceil_mode) else only_f32(op)


def _f32_result(op: Operation) -> str | None:
    found = tensor_type(op.results[0])
    return None if found.element_type == f32 else f"only float32 is supported, found {found}"


def _of_any_type(op: Operation) -> str | None:
    return None


_WINDOW = {"strides": "strides", "pads": "padding", "dilations": "dilation"}
_POOL = {**_WINDOW, "kernel_shape": "pool_size"}
_BATCH_NORM = _same("BatchNormalization", epsilon="epsilon").write
_MAXIMUM = _same("MaxPool", **_POOL).write
_AVERAGE = _same("AveragePool", **_POOL, count_include_pad="count_include_pad").write

EXPORTS: Mapping[str, Export] = {
    **{
        name: _same(op_type)
        for name, op_type in {
            "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "power": "Pow",
            "maximum": "Max", "minimum": "Min", "negative": "Neg", "abs": "Abs", "exp": "Exp",
            "log": "Log", "sqrt": "Sqrt", "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf",
            "sin": "Sin", "cos": "Cos", "ceil": "Ceil", "floor": "Floor",
            "nn.relu": "Relu", "nn.prelu": "PRelu",
        }.items()
    },
    **{f"nn.conv{n}d": _same("Conv", **_WINDOW, group="groups") for n in (1, 2, 3)},
    **{
        f"nn.conv{n}d_transpose": _same(
            "ConvTranspose", **_WINDOW, group="groups", output_padding="output_padding"
        )
        for n in (1, 2, 3)
    },
    **{f"nn.max_pool{n}d": Export(_MAXIMUM, _rounds_down) for n in (1, 2, 3)},
    **{f"nn.avg_pool{n}d": Export(_AVERAGE, _rounds_down) for n in (1, 2, 3)},
    **{f"nn.global_max_pool{n}d": _same("GlobalMaxPool") for n in (1, 2, 3)},
    **{f"nn.global_avg_pool{n}d": _same("GlobalAveragePool") for n in (1, 2, 3)},
    **{name: _reduction(f"Reduce{name.title()}") for name in ("sum", "mean", "prod", "max", "min")},
    **{name: _with_shape("Reshape") for name in ("reshape", "squeeze", "expand_dims")},
    "broadcast_to": _with_shape("Expand"),
    "nn.softmax": _same("Softmax", axis="axis"),
    "nn.log_softmax": _same("LogSoftmax", axis="axis"),
    "nn.leaky_relu": _same("LeakyRelu", alpha="alpha"),
    "nn.layer_norm": _same("LayerNormalization", axis="axis", epsilon="epsilon"),
    "nn.batch_norm": Export(_BATCH_NORM, _one_result),
    "nn.dense": Export(_dense),
    "nn.matmul": Export(_matmul),
    "nn.bias_add": Export(_bias_add),
    "clip": Export(_clip),
    "where": Export(_same("Where").write, _f32_result),
    "cast": Export(_cast, _of_any_type),
    "transpose": Export(_same("Transpose", perm="axes").write, _of_any_type),
    "concatenate": Export(_same("Concat", axis="axis").write, _of_any_type),
}  # fmt: skip
