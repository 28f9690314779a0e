"""Extraction of parts of an ONNX model as separate models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper

from byoc_mlir.frontend.files.load import load_model
from byoc_mlir.frontend.files.tensors import TensorReader
from byoc_mlir.frontend.inputs import model_inputs
from byoc_mlir.frontend.order import names_of, needed_nodes, ordered_nodes, read_names
from byoc_mlir.frontend.value import Array

Values = Mapping[str, Array]


@dataclass(frozen=True)
class ExtractedPart:
    """Some nodes of a model as a separate model, with its inputs."""

    model: ModelProto
    inputs: Values
    nodes: tuple[NodeProto, ...]
    """Nodes that do not compute constants."""


class WholeModel:
    """Model with all its data loaded, and with the names that reports use for its nodes."""

    def __init__(self, source: str | Path | bytes | ModelProto):
        loaded = load_model(source)
        self.model = ModelProto()
        self.model.CopyFrom(loaded)
        graph = self.model.graph
        if not isinstance(source, bytes | ModelProto):
            TensorReader.beside(source).inline(graph)
        self._constants = {tensor.name for tensor in graph.initializer}
        self._constants |= {tensor.values.name for tensor in graph.sparse_initializer}
        self.inputs = tuple(
            value.name for value in graph.input if value.name not in self._constants
        )
        nodes = ordered_nodes(graph.node, {*self.inputs, *self._constants})
        for node, name in zip(nodes, names_of(nodes), strict=True):
            node.name = name
        self.producer = {name: node for node in nodes for name in node.output if name}
        self.nodes: list[NodeProto] = []
        """Nodes that do not compute constants, in topological order."""
        self._folded: list[NodeProto] = []
        self.readers: dict[str, list[NodeProto]] = {}
        """Users of each tensor."""
        for node in nodes:
            if self._constants.issuperset(read_names(node)) and _repeats(node):
                self._constants.update(name for name in node.output if name)
                self._folded.append(node)
            else:
                self.nodes.append(node)
                for name in set(read_names(node)):
                    self.readers.setdefault(name, []).append(node)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Returns the names of the model's outputs."""
        return tuple(value.name for value in self.model.graph.output)

    def with_outputs(self, names: Iterable[str], values: Values) -> ModelProto:
        """Returns the model with the named tensors as further outputs; `values` determine their
        types.
        """
        tapped = ModelProto()
        tapped.CopyFrom(self.model)
        there = set(self.outputs)
        tapped.graph.output.extend(
            _declared(name, values[name], None) for name in names if name not in there
        )
        return tapped

    def symbols(self, inputs: Values) -> dict[int, str]:
        """Returns the name of the symbolic dimension for each input size greater than 1."""
        found: dict[int, str] = {}
        for info in model_inputs(self.model):
            sizes = zip(info.shape, np.shape(inputs[info.name]), strict=False)
            found |= {size: name for name, size in sizes if isinstance(name, str) and size > 1}
        return found

    def before(self, name: str) -> list[NodeProto]:
        """Returns the nodes that a tensor depends on, in order."""
        return needed_nodes(self.nodes, [name])

    def part(
        self,
        nodes: Sequence[NodeProto],
        outputs: Sequence[str],
        values: Values,
        symbols: Mapping[int, str],
    ) -> ExtractedPart:
        """Extracts the given nodes on which `outputs` depend as a separate model.

        Tensors of other nodes become its inputs.

        Args:
            values: values of all tensors that are not constant.
            symbols: symbolic dimension for each input size that stays symbolic.
        """
        among = {id(node) for node in nodes}
        kept = needed_nodes([node for node in self.nodes if id(node) in among], outputs)
        made = {name for node in kept for name in node.output}
        read = {name for node in kept for name in read_names(node)} | set(outputs)
        given = [name for name in values if name in read - made - self._constants]
        constants = needed_nodes(self._folded, read)
        needed = read.union(name for node in constants for name in read_names(node))
        graph = onnx.GraphProto(name=self.model.graph.name)
        graph.node.extend([*constants, *kept])
        graph.input.extend(
            _declared(name, values[name], [symbols.get(size, size) for size in values[name].shape])
            for name in given
        )
        shapes = {name: None if symbols else values[name].shape for name in outputs}
        graph.output.extend(_declared(name, values[name], shapes[name]) for name in outputs)
        whole = self.model.graph
        graph.initializer.extend(one for one in whole.initializer if one.name in needed)
        graph.sparse_initializer.extend(
            one for one in whole.sparse_initializer if one.values.name in needed
        )
        model = ModelProto(ir_version=self.model.ir_version, graph=graph)
        model.opset_import.extend(self.model.opset_import)
        model.functions.extend(self.model.functions)
        return ExtractedPart(model, {name: values[name] for name in given}, tuple(kept))


def _repeats(node: NodeProto) -> bool:
    """True if the node computes the same results in each run."""
    return not node.op_type.startswith(("Random", "Bernoulli", "Multinomial"))


def _declared(name: str, value: Array, shape: Sequence[int | str] | None) -> onnx.ValueInfoProto:
    """Declares a tensor of a graph with the type of a value."""
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, kind, shape)
