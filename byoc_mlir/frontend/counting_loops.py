"""Loops that count up to a bound, as exporters of TensorFlow write them, as loops of a known number
of iterations.

A `while` of TensorFlow is a `Loop` without a trip count. It carries a counter, the bound, and all
that its body reads, weights included; the body adds one to the counter and compares it with the
bound. What is carried unchanged is read where it is instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    helper,
    numpy_helper,
)

from byoc_mlir.frontend.inferred import graph_outline, inferred_graph
from byoc_mlir.frontend.loop_ends import body_of, has_body
from byoc_mlir.frontend.order import defined_names

_NUMBERS = (TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE)
"""Types in which a counter may be compared: they hold the numbers of all iterations."""


def with_counted_loops(model: ModelProto) -> ModelProto:
    """The model, in which loops that count have a trip count.

    ```text
    n, y = Loop <body = (i, c, n, x) { m = Add (n, 1); d = Less (m, bound); … }> ("", first, 0, x)
    // where first = Less (0, bound) becomes
    n, y = Loop <body = (i, c, n, x) { m = Add (n, 1); d = true; … }> (Sub (bound, 0), "", 0, x)
    ```

    Args:
        model: a checked model. It is not changed.
    """
    if not any(map(_is_while, model.graph.node)):
        return model
    inferred = inferred_graph(graph_outline(model))
    if inferred is None:  # the importer names the node, or accepts it
        return model
    changed = ModelProto()
    changed.CopyFrom(model)
    graph = _Graph(changed.graph)
    graph.note_types(inferred)
    nodes: list[NodeProto] = []
    for node in changed.graph.node:
        nodes += _counted(node, graph) if _is_while(node) else [node]
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    return changed


def _is_while(node: NodeProto) -> bool:
    """Whether it is a valid `Loop` without a trip count, with a condition."""
    if node.op_type != "Loop" or node.domain or len(node.input) < 3:
        return False
    return has_body(node) and not node.input[0] and bool(node.input[1])


class _Graph:
    """What is known of the names of a graph."""

    def __init__(self, graph: GraphProto):
        self.own = defined_names(graph).union(*(node.output for node in graph.node))
        self._producers = {name: node for node in graph.node for name in node.output}
        self._tensors: Mapping[str, TensorProto] = {
            **{tensor.name: tensor for tensor in graph.initializer},
            **dict(_constants(graph.node)),
        }
        self._types: dict[str, int] = {}

    def note_types(self, inferred: GraphProto) -> None:
        """Notes the types of the graph's values."""
        values = (*inferred.input, *inferred.value_info, *inferred.output)
        self._types = {value.name: value.type.tensor_type.elem_type for value in values}
        self._types |= {tensor.name: tensor.data_type for tensor in inferred.initializer}

    def is_integer(self, name: str) -> bool:
        """Whether a value is known to be of integers."""
        return self._types.get(name) in (TensorProto.INT32, TensorProto.INT64)

    def producer(self, name: str, *op_types: str) -> NodeProto | None:
        """The node of one of these types that makes a value."""
        node = self._producers.get(name)
        return node if node is not None and node.op_type in op_types else None

    def uncast(self, name: str) -> str:
        """What a value is a copy of, in the same numbers."""
        while (node := self.producer(name, "Cast", "Identity")) is not None:
            kinds = [attribute.i for attribute in node.attribute if attribute.name == "to"]
            if not set(kinds).issubset(_NUMBERS):
                break
            name = node.input[0]
        return name

    def number(self, name: str) -> int | None:
        """The integer that a constant of one element is."""
        tensor = self._tensors.get(self.uncast(name))
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
            return None
        if tensor.data_type not in _NUMBERS or any(size != 1 for size in tensor.dims):
            return None
        value = float(np.asarray(numpy_helper.to_array(tensor)).item())
        return int(value) if value.is_integer() else None


def _constants(nodes: Sequence[NodeProto]) -> Iterator[tuple[str, TensorProto]]:
    for node in nodes:
        if node.op_type == "Constant" and not node.domain:
            for attribute in node.attribute:
                if attribute.name == "value":
                    yield node.output[0], attribute.t


@dataclass(frozen=True)
class _Counting:
    """From where to where a loop counts, one by one."""

    first: int
    bound: str


def _counted(loop: NodeProto, graph: _Graph) -> Iterator[NodeProto]:
    """The nodes in the place of a loop: itself where it does not count."""
    inner = _Graph(body_of(loop))
    counting = _counting(loop, inner, graph)
    prefix = f"{loop.output[0] or loop.name}.counted"
    bound, first, count = (f"{prefix}.{what}" for what in ("bound", "first", "count"))
    goes_on = f"{prefix}.goes_on"
    is_free = graph.own.isdisjoint((bound, first, count)) and goes_on not in inner.own
    if counting is None or not is_free:
        yield loop
        return
    number = numpy_helper.from_array(np.array(counting.first, np.int64))
    yield helper.make_node("Cast", [counting.bound], [bound], name=bound, to=TensorProto.INT64)
    yield helper.make_node("Constant", [], [first], name=first, value=number)
    yield helper.make_node("Sub", [bound, first], [count], name=count)
    unchanged = list(_unchanged(loop, inner))
    _go_on(body_of(loop), goes_on)
    loop.input[0], loop.input[1] = count, ""
    yield from _read_outside(loop, unchanged)


def _counting(loop: NodeProto, inner: _Graph, graph: _Graph) -> _Counting | None:
    """What a loop counts, if its body goes on while the counter is less than the bound, and it
    begins if it is.
    """
    compared = _less(inner, body_of(loop).output[0].name)
    begins = _less(graph, loop.input[1])
    if compared is None or begins is None:
        return None
    state = _counter(body_of(loop), inner, graph, compared[0])
    bound = _outer(loop, inner, compared[1])
    if state is None or bound is None:
        return None
    first, bound = graph.number(loop.input[2 + state]), graph.uncast(bound)
    same = graph.number(begins[0]) == first and graph.uncast(begins[1]) == bound
    if first is None or not same or not graph.is_integer(bound):
        return None
    return _Counting(first, bound)


def _less(graph: _Graph, condition: str) -> tuple[str, str] | None:
    """The values of which the first is to be less than the second."""
    node = graph.producer(graph.uncast(condition), "Less", "Greater")
    if node is None:
        return None
    one, two = map(graph.uncast, node.input)
    return (one, two) if node.op_type == "Less" else (two, one)


def _counter(body: GraphProto, inner: _Graph, outer: _Graph, name: str) -> int | None:
    """Which of the carried values becomes this one, which is one more."""
    node = inner.producer(name, "Add")
    carried = [value.name for value in body.input[2:]]
    updates = [inner.uncast(value.name) for value in body.output[1 : 1 + len(carried)]]
    if node is None or name not in updates:
        return None
    state = updates.index(name)
    one, two = node.input
    other = two if one == carried[state] else one
    step = (inner if other in inner.own else outer).number(other)
    return state if carried[state] in (one, two) and step == 1 else None


def _outer(loop: NodeProto, inner: _Graph, name: str) -> str | None:
    """What a value of the body is outside of it, if it is the same in all iterations."""
    if name not in inner.own:
        return name
    return next((given for formal, given in _unchanged(loop, inner) if formal == name), None)


def _unchanged(loop: NodeProto, inner: _Graph) -> Iterator[tuple[str, str]]:
    """What a loop carries unchanged: its names within the body and outside of it."""
    body = body_of(loop)
    for number, given in enumerate(loop.input[2:]):
        formal = body.input[2 + number].name
        if inner.uncast(body.output[1 + number].name) == formal and given not in inner.own:
            yield formal, given


def _go_on(body: GraphProto, name: str) -> None:
    """Lets nothing end a loop."""
    true = numpy_helper.from_array(np.array(True))
    body.node.append(helper.make_node("Constant", [], [name], name=name, value=true))
    body.output[0].name = name


def _read_outside(loop: NodeProto, unchanged: Sequence[tuple[str, str]]) -> Iterator[NodeProto]:
    """A loop that reads outside of it what it carried unchanged, and what that is behind it."""
    body = body_of(loop)
    for formal, given in unchanged:
        number = next(n for n, value in enumerate(body.input) if value.name == formal) - 2
        body.node.insert(0, helper.make_node("Identity", [given], [formal], name=f"{formal}.read"))
        result = loop.output[number]
        del loop.input[2 + number], loop.output[number]
        del body.input[2 + number], body.output[1 + number]
        if result:
            yield helper.make_node("Identity", [given], [result], name=f"{result}.unchanged")
    yield loop
