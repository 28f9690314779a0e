"""Import of ONNX models to `relay`: one walk over the nodes, one small function per ONNX op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import onnx
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Region

from byoc_mlir.abi import NAME
from byoc_mlir.boundary import boundary
from byoc_mlir.dialects.locations import node_location
from byoc_mlir.dialects.relay import GuardOp, SymbolOp
from byoc_mlir.dialects.relay.base import Tensor, check_tensor_type, tensor_of
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.dialects.relay.shape import asking
from byoc_mlir.dims import LEAST_HINT, Guard, SymbolInfo
from byoc_mlir.dims import Shapes as DecidedSizes
from byoc_mlir.errors import (
    InputValuesNeededError,
    NodeProblem,
    UnsupportedModelError,
    UnsupportedTypeError,
)
from byoc_mlir.frontend.block_builder import BlockBuilder, name_hint
from byoc_mlir.frontend.block_weights import DOMAIN, with_packed_weights
from byoc_mlir.frontend.bodies import Bodies
from byoc_mlir.frontend.declared import declared_shapes
from byoc_mlir.frontend.either_rank import refuse_either_rank
from byoc_mlir.frontend.files.check import opset_versions
from byoc_mlir.frontend.files.load import load_model
from byoc_mlir.frontend.files.tensors import TensorReader
from byoc_mlir.frontend.graphs import function_key
from byoc_mlir.frontend.inputs import BoundInput, bind_inputs, size_names, symbolic_inputs
from byoc_mlir.frontend.model import ImportedModel, OnnxNode, TensorInfo
from byoc_mlir.frontend.normal_form import in_normal_form
from byoc_mlir.frontend.order import names_of, ordered_nodes, read_names
from byoc_mlir.frontend.scope import GraphScope, Session
from byoc_mlir.frontend.structures import kind_of
from byoc_mlir.frontend.value import Array, NodeRefused, SequenceValue, Value, ValueNeeded
from byoc_mlir.limits import check_time, note_constants
from byoc_mlir.tensors import item_name

__all__ = ["import_loaded", "import_model", "import_symbolic"]

Source: TypeAlias = str | Path | bytes | onnx.ModelProto
Shapes: TypeAlias = Mapping[str, Sequence[int]]
Values: TypeAlias = Mapping[str, Array]
NO_VALUES: Values = {}


def import_model(
    source: Source, shapes: Shapes | None = None, values: Values | None = None
) -> ImportedModel:
    """Reads an ONNX model and imports it as `relay` ops in `func.func @main`.

    Args:
        source: a path, the bytes of a model, or a `ModelProto`.
        shapes: for inputs with symbolic dimensions, the shape to compile for.
        values: for inputs that shapes depend on, the value to compile for. They remain inputs of
            `@main`, but are ignored.

    Raises:
        InvalidModelError: the model is not valid; `UnsafeModelError` if it looks malicious.
        UnsupportedModelError: some nodes cannot be imported; all of them are listed. If they can be
            imported for given `values`, it is an `InputValuesNeededError`.
        InvalidInputError: a symbolic dimension is not bound, or `shapes` contradicts the model.
    """
    model = in_normal_form(load_model(source))
    return import_loaded(model, TensorReader.beside(source), shapes or {}, values or {})


def import_loaded(
    model: onnx.ModelProto, reader: TensorReader, shapes: Shapes, values: Values = NO_VALUES
) -> ImportedModel:
    """Imports a model like `import_model`, after `load_model`, with the reader of its tensors."""
    inputs = bind_inputs(model, {**shapes, **{name: values[name].shape for name in values}})
    return _imported(model, reader, inputs, values)


def import_symbolic(
    model: onnx.ModelProto, reader: TensorReader, hints: Mapping[str, int]
) -> ImportedModel:
    """Imports a model for all sizes; its symbolic dimensions become symbols that the module
    declares.

    A decision that depends on a size is made for `hints`, and becomes a guard of the module; see
    `specialise-dims`.

    Args:
        hints: a size for each symbol.

    Raises:
        UnsupportedModelError: some nodes need known sizes.
        UndecidedSizeError: a decision about a node depends on a size, and cannot become a guard.
    """
    shapes = DecidedSizes(
        SymbolInfo(
            name,
            hint=max(LEAST_HINT, size),
            expected=size if size < LEAST_HINT else None,
        )
        for name, size in hints.items()
    )
    with asking(shapes):
        imported = _imported(model, reader, symbolic_inputs(model), NO_VALUES)
    block = imported.module.body.block
    declared = [
        *(SymbolOp.of(info) for info in shapes.symbols.values()),
        *map(_guard_op, shapes.guards),
    ]
    assert block.first_op is not None
    block.insert_ops_before(declared, block.first_op)
    return imported


def _input_type(info: BoundInput) -> Tensor:
    """Returns the tensor type of an input of `@main`.

    Raises:
        UnsupportedModelError: the element type is not supported.
    """
    try:
        return tensor_of(relay_type(info.dtype), info.shape)
    except UnsupportedTypeError as error:
        problem = NodeProblem(info.name, "input", "", str(error))
        raise UnsupportedModelError([problem]) from error


def _guard_op(guard: Guard) -> GuardOp:
    op = GuardOp.of(guard)
    op.location = node_location(guard.reason)
    return op


def _imported(
    model: onnx.ModelProto, reader: TensorReader, inputs: Sequence[BoundInput], values: Values
) -> ImportedModel:
    constants = reader.graph_tensors(model.graph)
    note_constants(sum(array.nbytes for array in constants.values()))
    types = list(map(_input_type, inputs))
    for info, type_ in zip(inputs, types, strict=True):
        check_tensor_type(type_, f"input '{info.name}'")
    block = Block(arg_types=types)
    given = {info.name for info in inputs}
    fixed = {name: array for name, array in constants.items() if name not in given}
    packed = with_packed_weights(model.graph, fixed)
    names = {name: Value(name, array) for name, array in {**constants, **packed.constants}.items()}
    for info, argument in zip(inputs, block.args, strict=True):
        argument.name_hint = name_hint(info.name)
        needed = frozenset([info.name]) - values.keys()  # given values are not requested again
        names[info.name] = Value(info.name, values.get(info.name, argument), inputs=needed)
    functions = {function_key(function): function for function in model.functions}
    declared = declared_shapes(model, inputs)
    session = Session(BlockBuilder(block), reader, functions, declared)
    opsets = opset_versions(model)
    if packed.constants:
        opsets.setdefault(DOMAIN, 1)
    graph = _MainGraph(GraphScope(session, opsets, names), packed.unread)
    results = [output.name for output in model.graph.output]
    graph.import_nodes(ordered_nodes(packed.nodes, {*names}), results)
    outputs = [
        tensor
        for output in model.graph.output
        for tensor in _tensors_of(output, names[output.name])
    ]
    block.add_op(func.ReturnOp(*map(session.builder.operand, outputs)))
    return ImportedModel(
        _module(block, [info.name for info in inputs], outputs, session.bodies),
        tuple(info.info for info in inputs),
        tuple(TensorInfo(value.name, value.dtype, size_names(value.sizes)) for value in outputs),
        tuple(graph.nodes),
    )


def _tensors_of(output: onnx.ValueInfoProto, value: Value) -> Sequence[Value]:
    """Returns the tensors of an output: one tensor, or the items of a sequence or optional."""
    if not isinstance(value, SequenceValue):
        return [value]
    if kind_of(output.type) == "tensor":
        reason = "it is a sequence or an optional, which the model does not declare"
        raise UnsupportedModelError([NodeProblem(output.name, "output", "", reason)])
    return [
        item.renamed(item_name(output.name, number), value.inputs)
        for number, item in enumerate(value.items)
    ]


def _module(
    block: Block,
    inputs: Sequence[str],
    outputs: Sequence[Value],
    bodies: Bodies,
) -> ModuleOp:
    results = [value.full_type for value in outputs]
    main = func.FuncOp(
        "main",
        ([argument.type for argument in block.args], results),
        Region(block),
        arg_attrs=_names(inputs),
        res_attrs=_names([value.name for value in outputs]),
    )
    symbols = map(SymbolOp.of, bodies.bound.values())
    return ModuleOp([*symbols, main, *bodies.functions])


def _names(names: Iterable[str]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr([DictionaryAttr({NAME: StringAttr(name)}) for name in names])


class _MainGraph:
    """Importer of the model's main graph, which collects a report row for each node, and all
    refusals.
    """

    def __init__(self, scope: GraphScope, unread: frozenset[str]):
        """Creates the importer; nodes that compute `unread` values are not imported."""
        self.scope = scope
        self.unread = unread
        self.nodes: list[OnnxNode] = []
        self.problems: list[NodeProblem] = []
        self.needed: set[str] = set()
        self.unknown: set[str] = set()
        self.values_help = True

    def import_nodes(self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> None:
        """Imports nodes in their order.

        Args:
            outputs: the names of the model's outputs.

        Raises:
            UnsupportedModelError: some nodes cannot be imported; all of them are listed.
        """
        for node, name in zip(nodes, names_of(nodes), strict=True):
            check_time()
            with boundary("import", name):
                self._import_or_note(node, name)
        for name in outputs:
            try:
                refuse_either_rank(self.scope.values.get(name))
            except NodeRefused as reason:
                self._note(NodeProblem(name, "output", "", str(reason)), reason)
        if self.problems and self.values_help:
            raise InputValuesNeededError(self.problems, sorted(self.needed))
        if self.problems:
            raise UnsupportedModelError(self.problems)

    def _import_or_note(self, node: onnx.NodeProto, name: str) -> None:
        try:
            self._import_node(node, name)
        except NodeRefused as reason:
            self._note(NodeProblem(name, node.op_type, node.domain, str(reason)), reason)
            self.unknown.update(node.output)

    def _note(self, problem: NodeProblem, reason: NodeRefused) -> None:
        self.problems.append(problem)
        needed = reason.inputs if isinstance(reason, ValueNeeded) else frozenset[str]()
        self.values_help = self.values_help and bool(needed)
        self.needed.update(needed)

    def _import_node(self, node: onnx.NodeProto, name: str) -> None:
        if not self.unread.isdisjoint(node.output):
            self.nodes.append(OnnxNode.of(name, node, "folded"))
        elif self.unknown.isdisjoint(read_names(node)):
            status = self.scope.import_node(node, name)
            self.nodes.append(OnnxNode.of(name, node, status))
            self.nodes += self.scope.session.bodies.take_rows()
        elif self.scope.knows_op(node):  # its inputs are unknown, which is reported already
            self.unknown.update(node.output)
        else:
            raise NodeRefused(self.scope.unknown_op(node))
