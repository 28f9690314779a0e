"""Topological order of a graph's nodes, and the names that nodes read and define."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Set
from copy import deepcopy

import onnx

from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.graphs import subgraphs


def ordered_nodes(
    nodes: Sequence[onnx.NodeProto], known: Set[str], outer: Set[str] = frozenset()
) -> list[onnx.NodeProto]:
    """Returns the nodes in topological order; nodes that are in order keep their order.

    Args:
        known: names that no node defines: inputs and initializers.
        outer: names of enclosing graphs; nodes may read them, and may define them again.

    Raises:
        InvalidModelError: a name is defined twice or read but never defined, or there is a cycle.
    """
    producer = _producers(nodes, known)
    waits_for: list[set[int]] = []
    for index, node in enumerate(nodes):
        waits_for.append(set())
        for name in read_names(node):
            if name in producer:
                waits_for[index].add(producer[name])
            elif name not in known and name not in outer:
                raise InvalidModelError(
                    f"node {describe(node, index)} reads '{name}', which nothing defines"
                )
    if all(not waits or max(waits) < index for index, waits in enumerate(waits_for)):
        return list(nodes)
    return [nodes[index] for index in _sorted(nodes, waits_for)]


def read_names(node: onnx.NodeProto) -> Iterator[str]:
    """Yields the names that a node reads, including names that its subgraphs capture."""
    yield from (name for name in node.input if name)
    for graph in subgraphs(node):
        yield from captured_names(graph)


def needed_nodes(nodes: Sequence[onnx.NodeProto], wanted: Iterable[str]) -> list[onnx.NodeProto]:
    """Returns the nodes on which the wanted tensors depend; `nodes` must be in order."""
    names, needed = set(wanted), list[onnx.NodeProto]()
    for node in reversed(nodes):
        if not names.isdisjoint(node.output):
            needed.append(node)
            names.update(read_names(node))
    return needed[::-1]


def captured_names(graph: onnx.GraphProto) -> set[str]:
    """Returns the names that a subgraph captures from enclosing graphs."""
    read = {name for node in graph.node for name in read_names(node)}
    return (read | {value.name for value in graph.output}) - all_names(graph)


def defined_names(graph: onnx.GraphProto) -> set[str]:
    """Returns the names that a graph has before its first node: inputs and initializers."""
    names = {value.name for value in graph.input}
    names.update(tensor.name for tensor in graph.initializer)
    names.update(sparse.values.name for sparse in graph.sparse_initializer)
    return names


def all_names(graph: onnx.GraphProto) -> set[str]:
    """Returns the names of a graph: inputs, initializers and results of nodes."""
    return defined_names(graph).union(*(node.output for node in graph.node))


def describe(node: onnx.NodeProto, index: int) -> str:
    """Returns a node's name for messages."""
    return f"'{node.name}' ({node.op_type})" if node.name else f"#{index} ({node.op_type})"


def _producers(nodes: Sequence[onnx.NodeProto], known: Set[str]) -> dict[str, int]:
    producer: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in known or name in producer:
                raise InvalidModelError(
                    f"node {describe(node, index)} defines '{name}', which is defined already"
                )
            producer[name] = index
    return producer


def _sorted(nodes: Sequence[onnx.NodeProto], waits_for: Sequence[set[int]]) -> list[int]:
    readers: list[list[int]] = [[] for _ in nodes]
    missing = [len(waits) for waits in waits_for]
    for index, waits in enumerate(waits_for):
        for before in waits:
            readers[before].append(index)
    ready = deque(index for index, count in enumerate(missing) if count == 0)
    order: list[int] = []
    while ready:
        index = ready.popleft()
        order.append(index)
        for reader in readers[index]:
            missing[reader] -= 1
            if missing[reader] == 0:
                ready.append(reader)
    if len(order) < len(nodes):
        cycle = _cycle(waits_for, set(range(len(nodes))).difference(order))
        listed = " <- ".join(describe(nodes[index], index) for index in cycle)
        raise InvalidModelError(f"the graph has a cycle: {listed}")
    return order


def _cycle(waits_for: Sequence[set[int]], stuck: set[int]) -> list[int]:
    """Returns a cycle among nodes that wait for each other."""
    path: list[int] = []
    index = min(stuck)
    while index not in path:
        path.append(index)
        index = min(waits_for[index] & stuck)
    return [*path[path.index(index) :], index]


def named_copies(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Returns copies of the nodes with unique names."""
    copies = [deepcopy(node) for node in nodes]
    for copy, name in zip(copies, names_of(nodes), strict=True):
        copy.name = name
    return copies


def names_of(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """Returns a unique name for each node: the node's own name, or for example `Conv_3` for the
    fourth node.
    """
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
