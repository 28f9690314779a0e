"""Trip counts for loops that count up to a bound, as exporters of TensorFlow write them.

A `while` of TensorFlow is a `Loop` without a trip count. It carries a counter, the bound, and
everything that its body reads, including weights. The body adds one to the counter and compares it
with the bound. The rewrite also removes values that are carried unchanged: the body reads them from
outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    helper,
    numpy_helper,
)

from byoc_mlir.frontend.graphs import with_nodes
from byoc_mlir.frontend.inferred import graph_outline, inferred_graph
from byoc_mlir.frontend.loops.bounded import BoundedBody, bounded, is_bounded
from byoc_mlir.frontend.loops.ends import body_of
from byoc_mlir.frontend.loops.values import Graph, read_outside, unchanged


def with_counted_loops(model: ModelProto) -> ModelProto:
    """Returns the model with trip counts for all loops with a counter.

    ```text
    n, y = Loop <body = (i, c, n, x) { m = Add (n, 1); d = Less (m, bound); … }> ("", first, 0, x)
    // where first = Less (0, bound) becomes
    n, y = Loop <body = (i, c, n, x) { m = Add (n, 1); d = true; … }> (Sub (bound, 0), "", 0, x)
    ```

    Args:
        model: checked model, which is not changed.
    """
    if not any(map(is_bounded, model.graph.node)):
        return model
    inferred = inferred_graph(graph_outline(model))
    if inferred is None:  # the importer names the node, or accepts it
        return model
    changed = deepcopy(model)
    graph = Graph(changed.graph)
    graph.note_types(inferred)
    return with_nodes(
        changed, (each for node in changed.graph.node for each in _known_better(node, graph))
    )


def _known_better(node: NodeProto, graph: Graph) -> Iterator[NodeProto]:
    """Yields the nodes that replace a node; a loop gets a trip count if it has a counter."""
    nodes = _counted(node, graph) if _is_while(node) else [node]
    for one in nodes:
        yield from bounded(one, graph) if is_bounded(one) else [one]


def _is_while(node: NodeProto) -> bool:
    """True if the node is a valid `Loop` with a condition and without a trip count."""
    return is_bounded(node) and not node.input[0]


def _counted(loop: NodeProto, graph: Graph) -> Iterator[NodeProto]:
    """Yields the nodes that replace a loop; if it has no counter, the loop itself."""
    body = BoundedBody(loop, graph)
    counting = _counting(loop, body, graph)
    prefix = f"{loop.output[0] or loop.name}.counted"
    bound, first, count = (f"{prefix}.{what}" for what in ("bound", "first", "count"))
    goes_on = f"{prefix}.goes_on"
    is_free = graph.own.isdisjoint((bound, first, count)) and goes_on not in body.graph.own
    if counting is None or not is_free:
        yield loop
        return
    begin, end = counting
    number = numpy_helper.from_array(np.array(begin, np.int64))
    yield helper.make_node("Cast", [end], [bound], name=bound, to=TensorProto.INT64)
    yield helper.make_node("Constant", [], [first], name=first, value=number)
    yield helper.make_node("Sub", [bound, first], [count], name=count)
    carried = list(unchanged(loop, body.graph))
    _go_on(body_of(loop), goes_on)
    loop.input[0], loop.input[1] = count, ""
    yield from read_outside(loop, carried)


def _counting(loop: NodeProto, body: BoundedBody, graph: Graph) -> tuple[int, str] | None:
    """Returns the counter's first value and its bound, of a loop that runs while it is below it.

    The condition must hold for the first iteration as well. Returns `None` for other loops.
    """
    compared = _less(body.graph, body_of(loop).output[0].name)
    begins = _less(graph, loop.input[1])
    if compared is None or begins is None:
        return None
    first = next((one.first for one in body.counters() if body.update(one) == compared[0]), None)
    bound = graph.uncast(body.outside(compared[1]))
    same = graph.number(begins[0]) == first and graph.uncast(begins[1]) == bound
    if first is None or not same or not graph.is_integer(bound):
        return None
    return first, bound


def _less(graph: Graph, condition: str) -> tuple[str, str] | None:
    """Returns the values `(a, b)` of a condition `a < b`; `None` for other conditions."""
    node = graph.producer(graph.uncast(condition), "Less", "Greater")
    if node is None:
        return None
    one, two = map(graph.uncast, node.input)
    return (one, two) if node.op_type == "Less" else (two, one)


def _go_on(body: GraphProto, name: str) -> None:
    """Sets the loop's condition to true, so that only the trip count ends the loop."""
    true = numpy_helper.from_array(np.array(True))
    body.node.append(helper.make_node("Constant", [], [name], name=name, value=true))
    body.output[0].name = name
