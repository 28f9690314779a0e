"""Known scalars and types in graphs with loops, and loop-carried values that never change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from byoc_mlir.frontend.graphs import attribute_of
from byoc_mlir.frontend.loops.ends import body_of
from byoc_mlir.frontend.order import all_names

NUMBERS = (TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE)
"""Types in which a counter may be compared: they hold the values of all iterations."""


class Graph:
    """Graph with the producers, constants and types of its names."""

    def __init__(self, graph: GraphProto):
        self.own = all_names(graph)
        self._producers = {name: node for node in graph.node for name in node.output}
        self._tensors: Mapping[str, TensorProto] = {
            **{tensor.name: tensor for tensor in graph.initializer},
            **dict(_constants(graph.node)),
        }
        self._types: dict[str, int] = {}

    def note_types(self, inferred: GraphProto) -> None:
        """Records the types of the graph's values."""
        values = (*inferred.input, *inferred.value_info, *inferred.output)
        self._types = {value.name: value.type.tensor_type.elem_type for value in values}
        self._types |= {tensor.name: tensor.data_type for tensor in inferred.initializer}

    def is_integer(self, name: str) -> bool:
        """True if a value is known to have an integer type."""
        return self._types.get(name) in (TensorProto.INT32, TensorProto.INT64)

    def producer(self, name: str, *op_types: str) -> NodeProto | None:
        """Returns the node that computes a value, if it is one of these op types, or `None`."""
        node = self._producers.get(name)
        return node if node is not None and node.op_type in op_types else None

    def uncast(self, name: str) -> str:
        """Returns the value from which `name` is computed by casts and copies that keep the
        number.
        """
        while (node := self.producer(name, "Cast", "Identity")) is not None:
            kinds = [attribute.i for attribute in node.attribute if attribute.name == "to"]
            if not set(kinds).issubset(NUMBERS):
                break
            name = node.input[0]
        return name

    def number(self, name: str) -> int | None:
        """Returns the integer in a constant of one element; `None` for other values."""
        tensor = self._tensors.get(self.uncast(name))
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
            return None
        if tensor.data_type not in NUMBERS or any(size != 1 for size in tensor.dims):
            return None
        value: int | float = np.asarray(numpy_helper.to_array(tensor)).item()
        return int(value) if isinstance(value, int) or value.is_integer() else None

    def truth(self, name: str) -> bool | None:
        """Returns the truth value in a constant of one element; `None` for other values."""
        tensor = self._tensors.get(self.uncast(name))
        if tensor is None or tensor.data_type != TensorProto.BOOL or prod(tensor.dims) != 1:
            return None
        return bool(np.asarray(numpy_helper.to_array(tensor)).item())


def _constants(nodes: Sequence[NodeProto]) -> Iterator[tuple[str, TensorProto]]:
    for node in nodes:
        if node.op_type == "Constant" and not node.domain:
            value = attribute_of(node, "value")
            if value.name:
                yield node.output[0], value.t


def unchanged(loop: NodeProto, inner: Graph) -> Iterator[tuple[str, str]]:
    """Yields the inner and outer name of each value that a loop carries unchanged."""
    body = body_of(loop)
    for number, given in enumerate(loop.input[2:]):
        formal = body.input[2 + number].name
        is_same = inner.uncast(body.output[1 + number].name) == formal
        if is_same and (given == formal or given not in inner.own):
            yield formal, given


def read_outside(loop: NodeProto, carried: Sequence[tuple[str, str]]) -> Iterator[NodeProto]:
    """Yields a loop that reads unchanged values from outside instead of carrying them, and
    `Identity`s for their results.
    """
    body = body_of(loop)
    for formal, given in carried:
        number = next(n for n, value in enumerate(body.input) if value.name == formal) - 2
        if formal != given:
            node = helper.make_node("Identity", [given], [formal], name=f"{formal}.read")
            body.node.insert(0, node)
        result = loop.output[number]
        del loop.input[2 + number], loop.output[number]
        del body.input[2 + number], body.output[1 + number]
        if result:
            yield helper.make_node("Identity", [given], [result], name=f"{result}.unchanged")
    yield loop
