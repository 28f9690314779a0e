"""Loop-invariant code motion in ONNX: moves nodes that compute the same in all iterations out of
loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from copy import deepcopy

from onnx import GraphProto, ModelProto, NodeProto

from byoc_mlir.frontend.external import has_graphs, is_random
from byoc_mlir.frontend.graphs import with_nodes
from byoc_mlir.frontend.loops.ends import body_of
from byoc_mlir.frontend.loops.growing import first_result
from byoc_mlir.frontend.loops.values import Graph
from byoc_mlir.frontend.order import all_names, needed_nodes, read_names
from byoc_mlir.frontend.rounded_sizes import GIVE_SIZES

_DOMAINS = ("", "ai.onnx", "com.microsoft")
"""Domains whose ops are deterministic, except the random ones."""

_PRODUCTS = frozenset(
    ("Conv", "ConvInteger", "ConvTranspose", "Einsum", "FusedMatMul", "Gemm", "MatMul")
) | {"MatMulInteger", "MatMulNBits", "QLinearConv", "QLinearMatMul"}
"""Ops that are expensive enough to be moved out of a loop."""


def with_invariants_outside(model: ModelProto, loops: Set[str]) -> ModelProto:
    """Returns the model with expensive loop-invariant nodes moved out of loops that run at least
    one iteration.

    ```text
    y = Loop <body = (i, c, x) { k = MatMul (a, w); z = Add (x, k); … }> (10, c, x)
    // becomes
    k = MatMul (a, w)
    y = Loop <body = (i, c, x) { z = Add (x, k); … }> (10, c, x)
    ```

    Args:
        model: checked model, which is not changed.
        loops: name of the first result of each loop to rewrite.
    """
    changed = deepcopy(model)
    graph = Graph(changed.graph)
    nodes: list[NodeProto] = []
    for node in changed.graph.node:
        if node.op_type == "Loop" and first_result(node) in loops and _begins(node, graph):
            nodes += _taken_out(body_of(node), graph)
        nodes.append(node)
    return with_nodes(changed, nodes)


def _begins(loop: NodeProto, graph: Graph) -> bool:
    most = graph.number(loop.input[0]) if loop.input[0] else 1
    return most is not None and most > 0 and (not loop.input[1] or bool(graph.truth(loop.input[1])))


def _taken_out(body: GraphProto, graph: Graph) -> Iterator[NodeProto]:
    """Removes a body's expensive loop-invariant nodes, and yields them for the outer graph.

    Other nodes that these need, such as sizes, are copied to the outer graph. The originals stay in
    the body, where more sizes are known.
    """
    same = list(_same_in_all_iterations(body))
    worth = [node for node in _worth_it(same) if graph.own.isdisjoint(node.output)]
    moved = {name for node in worth for name in node.output}
    copied = dict[str, str]()
    for node in needed_nodes(same, moved):
        outside = deepcopy(node)
        if moved.isdisjoint(node.output):
            copied |= {name: _free_name(name, graph) for name in node.output if name}
        else:
            body.node.remove(node)
        outside.input[:] = [copied.get(name, name) for name in node.input]
        outside.output[:] = [copied.get(name, name) for name in node.output]
        graph.own.update(outside.output)
        yield outside


def _same_in_all_iterations(body: GraphProto) -> Iterator[NodeProto]:
    changing = all_names(body)
    for node in body.node:
        if changing.isdisjoint(read_names(node)) and _gives_the_same(node):
            changing -= set(node.output)
            yield node


def _gives_the_same(node: NodeProto) -> bool:
    return node.domain in _DOMAINS and not has_graphs(node) and not is_random(node)


def _worth_it(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yields matmuls and convolutions, and the nodes that depend on them, except nodes that compute
    sizes.
    """
    found: set[str] = set()
    for node in nodes:
        follows = not found.isdisjoint(node.input) and node.op_type not in GIVE_SIZES
        if node.op_type in _PRODUCTS or follows:
            found.update(node.output)
            yield node


def _free_name(name: str, graph: Graph) -> str:
    name = f"{name}.outside"
    while name in graph.own:
        name += "_"
    return name
