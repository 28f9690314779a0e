"""Trip counts for loops whose counter has a bound, but which a condition may end earlier.

Exporters of Paddle write a `while` as a `Loop` that carries a counter. The loop continues while the
counter is below a bound and another condition holds. The rewrite computes the counter from the
iteration number, so that the importer can derive sizes from it (`frontend.formulas`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from byoc_mlir.frontend.loops.ends import body_of, has_body
from byoc_mlir.frontend.loops.values import NUMBERS, Graph, read_outside, unchanged

_COPIES = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Ops that copy the value of a tensor of one element."""

_LESS = ("Less", "LessOrEqual")

_COMPARISONS = (*_LESS, "Greater", "GreaterOrEqual")

_LOGIC = ("And", "Or", "Not", "If")

_INTEGERS = (TensorProto.INT32, TensorProto.INT64)

_EXACT = 1 << 24
"""Largest counter, as `f32` represents all integers up to this one exactly."""


@dataclass(frozen=True)
class _Counter:
    """Loop-carried integer that grows by one in each iteration."""

    place: int
    name: str
    first: int
    element: int


def is_bounded(node: NodeProto) -> bool:
    """True if the node is a valid `Loop` whose condition may compare a counter with a bound."""
    if node.op_type != "Loop" or node.domain or len(node.input) < 3:
        return False
    return has_body(node) and len(node.output) >= len(node.input) - 2 and bool(node.input[1])


def bounded(loop: NodeProto, graph: Graph) -> Iterator[NodeProto]:
    """Yields the nodes that replace a loop; if no counter bounds it, the loop itself.

    ```text
    n, x = Loop <body = (i, c, n, x) { …; m = Add (n, 1); d = And (Less (m, 10), e) }> ("", c, 0, x)
    // becomes
    n, x = Loop <body = (i, c, carried, x) { n = Add (i, 0); … }> (10, c, 0, x)
    ```
    """
    inner = BoundedBody(loop, graph)
    counters = list(inner.counters())
    most = min((count for count in inner.counts(counters)), default=None)
    given = graph.number(loop.input[0]) if loop.input[0] else None
    if given is not None:
        most = given if most is None else min(most, given)
    name = f"{loop.output[0] or loop.name}.most"
    made = tuple(f"{counter.name}.counted" for counter in counters)
    is_free = name not in graph.own and not any(own.startswith(made) for own in inner.graph.own)
    if not counters or not is_free or most is None or (loop.input[0] and given is None):
        yield loop
        return
    carried = list(unchanged(loop, inner.graph))
    for counter in counters:
        if counter.first + most < _EXACT:
            _count(body_of(loop), counter)
    number = numpy_helper.from_array(np.array(most, np.int64))
    yield helper.make_node("Constant", [], [name], name=name, value=number)
    loop.input[0] = name
    yield from read_outside(loop, carried)


class BoundedBody:
    """Body of a loop, with queries for its counters and known scalars."""

    def __init__(self, loop: NodeProto, outer: Graph):
        self.graph = Graph(body_of(loop))
        self._loop, self._outer = loop, outer
        self._unchanged = dict(unchanged(loop, self.graph))

    def counters(self) -> Iterator[_Counter]:
        """Yields the counters that the loop carries."""
        body = body_of(self._loop)
        for place, formal in enumerate(body.input[2:]):
            first = self._outer.number(self._loop.input[2 + place])
            element = formal.type.tensor_type.elem_type
            if first is None or abs(first) >= _EXACT or element not in _INTEGERS:
                continue
            if self._moved(body.output[1 + place].name) == (formal.name, 1):
                yield _Counter(place, formal.name, first, element)

    def update(self, counter: _Counter) -> str:
        """Returns the counter's value in the next iteration."""
        return self.graph.uncast(body_of(self._loop).output[1 + counter.place].name)

    def outside(self, name: str) -> str:
        """Returns the outer name of a value that is the same in all iterations; "" for others."""
        return self._unchanged.get(name, name if name not in self.graph.own else "")

    def counts(self, counters: Iterable[_Counter]) -> Iterator[int]:
        """Yields upper bounds of the trip count, derived from conditions that must hold for the
        loop to continue.
        """
        known = {counter.name: counter.first for counter in counters}
        for one, limit in self._limits(body_of(self._loop).output[0].name, True):
            counter, added = self._moved(one)
            if counter in known and abs(limit) < _EXACT:
                yield max(1, limit - known[counter] - added + 1)

    def _limits(self, condition: str, holds: bool) -> Iterator[tuple[str, int]]:
        """Yields pairs `(value, limit)`: if `condition` has the truth value `holds`, then `value <
        limit`.
        """
        node = self.graph.producer(condition, *_COPIES, *_COMPARISONS, *_LOGIC, "Add")
        if node is None:
            return
        if node.op_type in _COMPARISONS:
            yield from self._limit(node, holds)
        elif node.op_type == "Add":
            terms = [name for name in node.input if self._number(name) != 0]
            if len(terms) == 1:
                yield from self._limits(terms[0], holds)
        elif node.op_type == "If":
            for decides in self._decided(node, holds):
                yield from self._limits(node.input[0], decides)
        elif node.op_type not in ("And", "Or"):
            yield from self._limits(node.input[0], holds != (node.op_type == "Not"))
        elif holds == (node.op_type == "And"):
            for name in node.input:
                yield from self._limits(name, holds)

    def _limit(self, comparison: NodeProto, holds: bool) -> Iterator[tuple[str, int]]:
        low, high = comparison.input[:: 1 if comparison.op_type in _LESS else -1]
        may_equal = comparison.op_type.endswith("OrEqual")
        if not holds:
            low, high, may_equal = high, low, not may_equal
        limit = self._number(high)
        if limit is not None:
            yield low, limit + may_equal

    def _decided(self, node: NodeProto, holds: bool) -> Iterator[bool]:
        """Yields the possible truth values of an `If`'s condition, given that the `If` returns
        `holds`.

        A branch with a constant result other than `holds` cannot have run.
        """
        for attribute in node.attribute:
            given = self._truth(attribute.g)
            if given is not None and given != holds:
                yield attribute.name != "then_branch"

    def _truth(self, branch: GraphProto) -> bool | None:
        """Returns the constant truth value that a branch returns; `None` if it is not constant."""
        inner = Graph(branch)
        name = inner.uncast(branch.output[0].name)
        graphs = (inner, self.graph, self._outer)
        return next((graph.truth(name) for graph in graphs if name in graph.own), None)

    def _number(self, name: str) -> int | None:
        """Returns the integer that a value equals in all iterations; `None` if it is not known."""
        base, added = self._moved(name)
        outside = self.outside(base)
        number = self._outer.number(outside) if outside else self.graph.number(base)
        return None if number is None else number + added

    def _moved(self, name: str) -> tuple[str, int]:
        """Returns the value from which `name` is computed by copies and additions of constants, and
        the sum of the constants.
        """
        added = 0
        while (node := self.graph.producer(name, *_COPIES, "Add")) is not None:
            kinds = {attribute.i for attribute in node.attribute if attribute.name == "to"}
            if not kinds.issubset(NUMBERS):
                break
            if node.op_type != "Add":
                name = node.input[0]
                continue
            terms = [(one, self._constant(one)) for one in node.input]
            known = [number for _, number in terms if number is not None]
            if len(known) != 1:
                break
            added += known[0]
            name = next(one for one, number in terms if number is None)
        return name, added

    def _constant(self, name: str) -> int | None:
        return (self.graph if name in self.graph.own else self._outer).number(name)


def _count(body: GraphProto, counter: _Counter) -> None:
    """Replaces a counter by the iteration number plus the counter's first value."""
    name, formal = counter.name, body.input[2 + counter.place]
    made = f"{name}.counted"
    formal.name = f"{made}.carried"
    first = numpy_helper.from_array(np.array(counter.first, np.int64))
    nodes = [
        helper.make_node("Constant", [], [f"{made}.first"], value=first),
        helper.make_node("Add", [body.input[0].name, f"{made}.first"], [f"{made}.wide"]),
        helper.make_node("Cast", [f"{made}.wide"], [f"{made}.number"], to=counter.element),
        helper.make_node("Shape", [formal.name], [f"{made}.shape"]),
        helper.make_node("Reshape", [f"{made}.number", f"{made}.shape"], [name]),
    ]
    for place, node in enumerate(nodes):
        node.name = f"{made}.{place}"
        body.node.insert(place, node)
