"""Import of the nodes of one graph or function body, with the values that its names stand for."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace

import onnx
from onnx.defs import OpSchema
from xdsl.ir import Attribute, Block
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.locations import node_location
from byoc_mlir.dialects.relay.shape import asked
from byoc_mlir.errors import ByocError, InvalidModelError, UnsupportedTypeError
from byoc_mlir.frontend.attributes import node_attributes
from byoc_mlir.frontend.block_builder import BlockBuilder, name_hint
from byoc_mlir.frontend.bodies import Bodies
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.declared import Declared
from byoc_mlir.frontend.either_rank import (
    check_rank_does_not_show,
    refuse_either_rank,
    with_their_rank,
)
from byoc_mlir.frontend.files.tensors import TensorReader
from byoc_mlir.frontend.graphs import (
    FunctionKey,
    called_function,
    standard_name,
    standard_node,
)
from byoc_mlir.frontend.known_ops import (
    function_of,
    has_standard_function,
    node_schema,
    unfit_without_schema,
    unknown_op,
)
from byoc_mlir.frontend.model import NodeStatus, OnnxNode
from byoc_mlir.frontend.order import names_of, ordered_nodes, read_names
from byoc_mlir.frontend.schema import check_node, check_types
from byoc_mlir.frontend.value import NodeRefused, Value, ValueNeeded


@dataclass
class Session:
    """State that all scopes of one import share."""

    builder: BlockBuilder
    reader: TensorReader
    functions: Mapping[FunctionKey, onnx.FunctionProto]
    declared: Declared
    bodies: Bodies = field(default_factory=Bodies)


class GraphScope:
    """Importer of a graph's or function body's nodes, with the names that are visible in it."""

    def __init__(
        self,
        session: Session,
        opsets: Mapping[str, int],
        values: MutableMapping[str, Value],
    ):
        self.session = session
        self.opsets = opsets
        self.values = values

    def import_node(self, node: onnx.NodeProto, name: str) -> NodeStatus:
        """Imports a node, its ops located at `name`; returns its status.

        Raises:
            NodeRefused: the node cannot be imported.
            InvalidModelError: the node is not valid.
        """
        inputs = [self.values[input_] if input_ else None for input_ in node.input]
        body = self.session.functions.get(called_function(node))
        if body is not None:
            last = self.session.builder.block.last_op
            outputs = self._call(node, name, body, None, inputs)
            return self._finish(node, outputs, self.session.builder.block.last_op is not last)
        check_rank_does_not_show(node, inputs)
        asked().reason = name
        opset = self._opset(node, name)
        schema = node_schema(node, opset)
        self._check(standard_node(node), name, inputs)
        last = self.session.builder.block.last_op
        try:
            outputs = self._outputs(node, name, opset, schema, inputs)
        except ValueNeeded:
            raise
        except NodeRefused as reason:
            outputs = self._carried(node, name, schema, inputs, str(reason))
            if outputs is None:
                raise
        if schema is not None:
            check_types(node, name, schema, inputs, outputs)
        outputs = outputs if node.op_type == "If" else with_their_rank(inputs, outputs)
        return self._finish(node, outputs, self.session.builder.block.last_op is not last)

    def _check(self, node: onnx.NodeProto, name: str, inputs: Sequence[Value | None]) -> None:
        """Checks a node against its op's schema or, without a schema, against its importing
        function.
        """
        opset = self._opset(node, name)
        schema = node_schema(node, opset)
        if schema is not None:
            check_node(node, name, schema)
            check_types(node, name, schema, inputs)
        elif reason := unfit_without_schema(node, opset):
            raise NodeRefused(reason)

    def _outputs(
        self,
        node: onnx.NodeProto,
        name: str,
        opset: int,
        schema: OpSchema | None,
        inputs: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        """Returns the outputs of a node, by the op's importing function or by its body in the
        standard.
        """
        op = function_of(node, opset)
        if op is None:
            from byoc_mlir.frontend.functions import standard_function, unfit_operands

            body = None if schema is None else standard_function(node, schema, opset, inputs)
            if body is None:
                raise NodeRefused(f"the op is not supported (opset {opset})")
            if reason := unfit_operands(node.op_type, inputs):
                raise InvalidModelError(f"node '{name}' ({node.op_type}): {reason}")
            try:
                return self._call(node, name, body, schema, inputs)
            except InvalidModelError as error:  # the model does not show the body
                reason = self._invalid_by_onnx(node, schema, inputs)
                within = reason or f"in its body, with {_attributes(node)}: {error}"
                raise InvalidModelError(f"node '{name}' ({node.op_type}): {within}") from error
        context = NodeContext(
            name,
            node.op_type,
            opset,
            tuple(node.output),
            self.session.builder,
            self._run_graph,
            self._open_body,
            self.session.bodies,
            self.session.declared,
        )
        try:
            return op(context, inputs, node_attributes(node, self.session.reader))
        except UnsupportedTypeError as error:
            raise NodeRefused(str(error)) from error
        except (NodeRefused, ByocError, MemoryError, RecursionError):
            raise
        except (VerifyException, OverflowError) as error:
            raise InvalidModelError(f"node '{name}' ({node.op_type}): {error}") from error
        except Exception as error:  # the function relies on a valid node
            reason = self._invalid_by_onnx(node, schema, inputs)
            if not reason:
                raise
            raise InvalidModelError(f"node '{name}' ({node.op_type}): {reason}") from error

    def _carried(
        self,
        node: onnx.NodeProto,
        name: str,
        schema: OpSchema | None,
        inputs: Sequence[Value | None],
        reason: str,
    ) -> Sequence[Value | None] | None:
        """Returns the outputs of a node without native code; `None` if it cannot be carried.

        If all inputs are known, the node is folded. Otherwise a backend or the fallback interpreter
        will run it.
        """
        if schema is None:
            return None
        from byoc_mlir.frontend.external import external_node
        from byoc_mlir.frontend.fold import computed_by_onnx

        arrays = computed_by_onnx(node, schema, self.opsets, inputs)
        if arrays is not None:
            location = node_location(name)
            return [None if array is None else Value(name, array, location) for array in arrays]
        return external_node(node, name, schema, self.opsets, inputs, self.session.builder, reason)

    def _invalid_by_onnx(
        self, node: onnx.NodeProto, schema: OpSchema | None, inputs: Sequence[Value | None]
    ) -> str | None:
        """Returns why ONNX's shape inference refuses a node that could not be imported."""
        if schema is None:
            return None
        from byoc_mlir.frontend.external import invalid_by_onnx

        return invalid_by_onnx(node, schema, self.opsets, inputs)

    def knows_op(self, node: onnx.NodeProto) -> bool:
        """True if the node's op can be imported, by an importing function or by a function body."""
        opset = self.opsets.get(standard_name(node.domain), 0)
        schema = node_schema(node, opset)
        return (
            called_function(node) in self.session.functions
            or function_of(node, opset) is not None
            or (schema is not None and has_standard_function(schema))
        )

    def unknown_op(self, node: onnx.NodeProto) -> str:
        """Returns why a node of an unknown op is refused."""
        opset = self.opsets.get(standard_name(node.domain), 0)
        if node_schema(node, opset) is None:
            return unknown_op(node, opset)
        return f"the op is not supported (opset {opset})"

    def _opset(self, node: onnx.NodeProto, name: str) -> int:
        opset = self.opsets.get(standard_name(node.domain), 0)
        if not opset:
            raise InvalidModelError(
                f"node '{name}' ({node.op_type}): the model does not say which opset of the domain"
                f" '{node.domain}' it uses"
            )
        return opset

    def _call(
        self,
        node: onnx.NodeProto,
        name: str,
        body: onnx.FunctionProto,
        schema: OpSchema | None,
        inputs: Sequence[Value | None],
    ) -> list[Value | None]:
        values = {
            formal: value
            for formal, value in zip(body.input, inputs, strict=False)
            if value is not None
        }
        opsets = {standard_name(entry.domain): entry.version for entry in body.opset_import}
        scope = GraphScope(self.session, {**self.opsets, **opsets}, values)
        absent = set(body.input) - set(values)
        from byoc_mlir.frontend.functions import bound_node, call_attributes

        given = call_attributes(node, body, schema)
        nodes = [bound_node(inner, given, absent) for inner in body.node]
        scope.import_body(ordered_nodes(nodes, values.keys()), name)
        return [scope.values.get(formal) for formal in body.output]

    def import_body(self, nodes: Sequence[onnx.NodeProto], name: str) -> None:
        """Imports the nodes of a function body; their ops are located at the calling node
        `name`.

        Raises:
            NodeRefused: a node cannot be imported.
            LimitExceededError: all bodies together have too many nodes.
        """
        self.session.bodies.count(len(nodes))
        for node in nodes:
            try:
                self.import_node(node, name)
            except ValueNeeded as reason:
                message = f"in its body, {node.op_type}: {reason}"
                raise ValueNeeded(message, reason.inputs) from reason
            except NodeRefused as reason:
                raise NodeRefused(f"in its body, {node.op_type}: {reason}") from reason

    def _run_graph(self, graph: onnx.GraphProto, inputs: Sequence[Value], name: str) -> list[Value]:
        """Imports a subgraph for given inputs, and returns its outputs; it may use the names of
        this scope.
        """
        scope, nodes = self._inner(graph, inputs)
        scope.import_body(nodes, name)
        return scope._results(graph)

    def _run_body(self, graph: onnx.GraphProto, inputs: Sequence[Value], path: str) -> list[Value]:
        """Imports the nodes of a subgraph, and returns the subgraph's outputs.

        `path` is the prefix of the nodes' names in locations and report rows.
        """
        scope, nodes = self._inner(graph, inputs)
        bodies = self.session.bodies
        bodies.count(len(nodes))
        for node, own in zip(nodes, names_of(nodes), strict=True):
            name, place = f"{path}/{own}", len(bodies.rows)
            try:
                status = scope.import_node(node, name)
            except ValueNeeded as reason:
                message = f"'{name}' ({node.op_type}): {reason}"
                raise ValueNeeded(message, reason.inputs) from reason
            except NodeRefused as reason:
                raise NodeRefused(f"'{name}' ({node.op_type}): {reason}") from reason
            bodies.rows.insert(place, OnnxNode.of(name, node, status))
        return scope._results(graph)

    def _results(self, graph: onnx.GraphProto) -> list[Value]:
        """Returns the results of a branch or body whose nodes this scope has imported."""
        results = [self.values[output.name] for output in graph.output]
        for value in results:
            refuse_either_rank(value)
        return results

    def _inner(
        self, graph: onnx.GraphProto, inputs: Sequence[Value]
    ) -> tuple[GraphScope, Sequence[onnx.NodeProto]]:
        """Returns a new scope for a subgraph, and the subgraph's nodes in order."""
        values: ChainMap[str, Value] = ChainMap({}, self.values)
        constants = self.session.reader.graph_tensors(graph)
        values.update({key: Value(key, array) for key, array in constants.items()})
        names = [formal.name for formal in graph.input]
        values.update(zip(names, inputs, strict=True))
        scope = GraphScope(self.session, self.opsets, values)
        own = values.maps[0].keys()
        return scope, ordered_nodes(graph.node, own, self.values.keys())

    def _open_body(self, context: NodeContext, types: Sequence[Attribute]) -> NodeContext:
        """Returns the context of a node in a new block, with arguments of these types."""
        builder = BlockBuilder(Block(arg_types=types), self.session.builder)
        scope = GraphScope(replace(self.session, builder=builder), self.opsets, self.values)
        return replace(
            context, builder=builder, run_graph=scope._run_body, open_body=scope._open_body
        )

    def _finish(
        self, node: onnx.NodeProto, outputs: Sequence[Value | None], emitted: bool
    ) -> NodeStatus:
        self._define(node, outputs)
        if emitted:
            return "imported"
        is_known = all(value is None or value.known is not None for value in outputs)
        return "folded" if is_known else "removed"

    def _define(self, node: onnx.NodeProto, outputs: Sequence[Value | None]) -> None:
        read = [self.values[name].inputs for name in read_names(node) if name in self.values]
        inputs = frozenset[str]().union(*read)
        for name, value in zip(node.output, outputs, strict=False):
            if name and value is not None:
                if value.ssa is not None:
                    self.session.builder.check_visible(value.ssa)
                    value.ssa.name_hint = value.ssa.name_hint or name_hint(name)
                    self.session.builder.name_late(value.ssa, name)
                self.values[name] = value.renamed(name, inputs)


def _attributes(node: onnx.NodeProto) -> str:
    listed = [str(onnx.helper.printable_attribute(attribute)) for attribute in node.attribute]
    return ", ".join(listed) or "no attributes"
