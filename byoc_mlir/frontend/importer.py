"""ONNX models to `relay`: one walk over the nodes, one small function per ONNX op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import onnx
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Region
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.locations import node_location
from byoc_mlir.errors import InvalidModelError, NodeProblem, UnsupportedModelError
from byoc_mlir.frontend import ops as _ops  # registers the functions
from byoc_mlir.frontend.attributes import node_attributes
from byoc_mlir.frontend.builder import BlockBuilder, NodeContext, name_hint
from byoc_mlir.frontend.check import opset_versions
from byoc_mlir.frontend.fold import fold_node
from byoc_mlir.frontend.inputs import bind_inputs
from byoc_mlir.frontend.load import load_model
from byoc_mlir.frontend.model import ImportedModel, NodeStatus, OnnxNode, TensorInfo
from byoc_mlir.frontend.order import ordered_nodes
from byoc_mlir.frontend.registry import find_op
from byoc_mlir.frontend.schema import check_node, op_schema
from byoc_mlir.frontend.tensors import TensorReader, model_tensors
from byoc_mlir.frontend.value import Array, NodeRefused, Value

__all__ = ["import_loaded", "import_model"]

assert _ops
Source: TypeAlias = str | Path | bytes | onnx.ModelProto
Shapes: TypeAlias = Mapping[str, Sequence[int]]


def import_model(source: Source, shapes: Shapes | None = None) -> ImportedModel:
    """Reads an ONNX model and imports it as `relay` ops in `func.func @main`.

    Args:
        source: a path, the bytes of a model, or a `ModelProto`.
        shapes: for inputs with symbolic dimensions, the shape to compile for.

    Raises:
        InvalidModelError: it is not a valid model; `UnsafeModelError` when it looks malicious.
        UnsupportedModelError: some nodes cannot be imported; all of them are listed.
        InvalidInputError: a symbolic dimension is not bound, or `shapes` contradicts the model.
    """
    folder = Path(source).parent if isinstance(source, str | Path) else None
    return import_loaded(load_model(source), folder, shapes or {})


def import_loaded(model: onnx.ModelProto, folder: Path | None, shapes: Shapes) -> ImportedModel:
    """As `import_model`, for a model that `load_model` gave; external data lies in `folder`."""
    reader = TensorReader(folder)
    constants = model_tensors(model.graph, reader)
    inputs = bind_inputs(model, shapes)
    block = Block(arg_types=[info.type for info in inputs])
    importer = _Importer(opset_versions(model), reader, BlockBuilder(block))
    importer.values.update({name: Value(name, array) for name, array in constants.items()})
    for info, argument in zip(inputs, block.args, strict=True):
        argument.name_hint = name_hint(info.name)
        importer.values[info.name] = Value(info.name, argument)
    importer.import_nodes(ordered_nodes(model.graph.node, importer.values.keys()))
    outputs = importer.outputs(output.name for output in model.graph.output)
    return ImportedModel(
        _main_module(block, [info.name for info in inputs], outputs),
        tuple(TensorInfo(info.name, info.dtype, info.shape) for info in inputs),
        tuple(TensorInfo(value.name, value.dtype, value.shape) for value in outputs),
        tuple(importer.nodes),
    )


def _main_module(block: Block, inputs: Sequence[str], outputs: Sequence[Value]) -> ModuleOp:
    results = [value.type for value in outputs]
    main = func.FuncOp(
        "main",
        ([argument.type for argument in block.args], results),
        Region(block),
        arg_attrs=_names(inputs),
        res_attrs=_names([value.name for value in outputs]),
    )
    return ModuleOp([main])


def _names(names: Iterable[str]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr([DictionaryAttr({"byoc.name": StringAttr(name)}) for name in names])


class _Importer:
    """The state of the walk: what every name stands for, what became of the nodes so far."""

    def __init__(self, opsets: Mapping[str, int], reader: TensorReader, builder: BlockBuilder):
        self.opsets = opsets
        self.reader = reader
        self.builder = builder
        self.values: dict[str, Value] = {}
        self.nodes: list[OnnxNode] = []
        self.problems: list[NodeProblem] = []
        self.unknown: set[str] = set()

    def import_nodes(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Imports nodes in their order.

        Raises:
            UnsupportedModelError: some cannot be; all are listed.
        """
        for node, name in zip(nodes, unique_names(nodes), strict=True):
            try:
                self._import_node(node, name)
            except NodeRefused as reason:
                self.problems.append(NodeProblem(name, node.op_type, node.domain, str(reason)))
                self.unknown.update(node.output)
        if self.problems:
            raise UnsupportedModelError(self.problems)

    def outputs(self, names: Iterable[str]) -> list[Value]:
        """The values of the graph's outputs, returned from the block."""
        values = [self.values[name] for name in names]
        self.builder.block.add_op(func.ReturnOp(*map(self.builder.operand, values)))
        return values

    def _import_node(self, node: onnx.NodeProto, name: str) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = self.opsets.get(domain, 0)
        if not opset:
            raise InvalidModelError(
                f"node '{name}' ({node.op_type}): the model does not say which opset of the domain"
                f" '{node.domain}' it uses"
            )
        schema = op_schema(domain, node.op_type, opset)
        if schema is None:
            raise NodeRefused(f"there is no such op in opset {opset} of the domain")
        check_node(node, name, schema)
        op = find_op(domain, node.op_type, opset)
        if op is None:
            raise NodeRefused(f"the op is not supported (opset {opset})")
        if any(input_ in self.unknown for input_ in node.input):
            self.unknown.update(node.output)
            return
        inputs = [self.values[input_] if input_ else None for input_ in node.input]
        if self._fold(node, name, inputs):
            return
        context = NodeContext(name, node.op_type, opset, tuple(node.output), self.builder)
        last = self.builder.block.last_op
        try:
            outputs = op(context, inputs, node_attributes(node, self.reader))
        except VerifyException as error:
            raise InvalidModelError(f"node '{name}' ({node.op_type}): {error}") from error
        self._define(node, outputs)
        emitted = self.builder.block.last_op is not last
        self.nodes.append(OnnxNode(name, node.op_type, _status(outputs, emitted)))

    def _fold(self, node: onnx.NodeProto, name: str, inputs: Sequence[Value | None]) -> bool:
        if any(value is not None and value.constant is None for value in inputs):
            return False
        arrays = fold_node(
            node, [None if value is None else value.constant for value in inputs], self.opsets
        )
        if arrays is None:
            return False
        location = node_location(name)
        self._define(node, [Value(name, array, location) for array in arrays])
        self.nodes.append(OnnxNode(name, node.op_type, "folded"))
        return True

    def _define(self, node: onnx.NodeProto, outputs: Sequence[Value]) -> None:
        for name, value in zip(node.output, outputs, strict=False):
            if not name:
                continue
            if value.ssa is None:
                value = Value(name, _known(value), value.location)
            else:
                value.ssa.name_hint = value.ssa.name_hint or name_hint(name)
                value = Value(name, value.ssa)
            self.values[name] = value


def _known(value: Value) -> Array:
    assert value.constant is not None
    return value.constant


def _status(outputs: Sequence[Value], emitted: bool) -> NodeStatus:
    if emitted:
        return "imported"
    return "folded" if all(value.constant is not None for value in outputs) else "removed"


def unique_names(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """One name per node: its own, or `Conv_3` for the fourth node; a repeated one is numbered."""
    given = {node.name for node in nodes}
    taken: set[str] = set()
    names: list[str] = []
    for index, node in enumerate(nodes):
        name = node.name or f"{node.op_type}_{index}"
        number = index
        while name in taken or (name in given and name != node.name):
            name = f"{node.name or node.op_type}_{number}"
            number += len(nodes)
        taken.add(name)
        names.append(name)
    return names
