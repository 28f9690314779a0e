"""Motion of nodes with data-dependent shapes, such as NonMaxSuppression, out of branches.

Exporters of detectors write an `If` that checks for boxes before it selects the best ones. A node
with a data-dependent shape ends a segment (`split.py`), but a segment cannot end within a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

from onnx import GraphProto, ModelProto, NodeProto

from byoc_mlir.frontend.external import has_graphs
from byoc_mlir.frontend.graphs import standard_name, subgraphs, with_nodes
from byoc_mlir.frontend.order import all_names, defined_names, needed_nodes, read_names
from byoc_mlir.frontend.stages.suggestions import finds_its_size

_CANNOT_FAIL = frozenset(
    {
        "Abs",
        "Add",
        "And",
        "Cast",
        "Ceil",
        "Constant",
        "Equal",
        "Exp",
        "Floor",
        "Greater",
        "GreaterOrEqual",
        "Identity",
        "Less",
        "LessOrEqual",
        "Max",
        "Min",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "ReduceMax",
        "ReduceMin",
        "Round",
        "Shape",
        "Sigmoid",
        "Slice",
        "Sqrt",
        "Sub",
        "Transpose",
        "Unsqueeze",
        "Where",
        "Xor",
    }
)
"""Ops that may run even if their branch does not: they fail for no operand."""


def with_searches_outside(model: ModelProto) -> ModelProto:
    """Returns the model with nodes of data-dependent shapes moved out of branches.

    ```text
    y = If (c) <then = { k = Constant () },
                else = { a = Unsqueeze (x); n = NonMaxSuppression (a, …); k = Gather (n, 2) }>
    // becomes
    a = Unsqueeze (x)
    n = NonMaxSuppression (a, …)
    y = If (c) <then = { k = Constant () }, else = { k = Gather (n, 2) }>
    ```

    The nodes on which they depend move too, if they cannot fail. If such a node may fail, no node
    of the branch moves.

    Args:
        model: checked model, which is not changed.
    """
    if not any(map(_has_searches, model.graph.node)):
        return model
    changed = deepcopy(model)
    graph = changed.graph
    own = all_names(graph)
    nodes: list[NodeProto] = []
    for node in graph.node:
        for branch in _branches(node):
            moved = _movable(branch, own)
            own.update(name for one in moved for name in one.output)
            nodes += _taken_out(branch, moved, graph)
        nodes.append(node)
    return with_nodes(changed, nodes)


def _has_searches(node: NodeProto) -> bool:
    return any(finds_its_size(inner) for branch in _branches(node) for inner in branch.node)


def _branches(node: NodeProto) -> Iterator[GraphProto]:
    if node.op_type == "If" and not standard_name(node.domain):
        yield from subgraphs(node)


def _movable(branch: GraphProto, taken: set[str]) -> Sequence[NodeProto]:
    """Returns the nodes of a branch to move to the enclosing graph.

    They are the nodes with data-dependent shapes, and the nodes on which these depend. If one of
    them cannot move, the result is empty.
    """
    found = [name for node in branch.node if finds_its_size(node) for name in node.output]
    needed = needed_nodes(branch.node, found)
    names = {name for node in needed for name in node.output} | _tensors_of(branch, needed)
    return needed if all(map(_may_run, needed)) and names.isdisjoint(taken) else ()


def _may_run(node: NodeProto) -> bool:
    """True if a node may run even if its branch does not."""
    is_standard = not standard_name(node.domain) and not has_graphs(node)
    return is_standard and (node.op_type in _CANNOT_FAIL or finds_its_size(node))


def _tensors_of(branch: GraphProto, nodes: Sequence[NodeProto]) -> set[str]:
    """Returns the initializers of a branch that nodes read."""
    return defined_names(branch) & {name for node in nodes for name in read_names(node)}


def _taken_out(
    branch: GraphProto, nodes: Sequence[NodeProto], graph: GraphProto
) -> Iterator[NodeProto]:
    """Moves nodes of a branch, and the initializers that they read, to the enclosing graph."""
    tensors = _tensors_of(branch, nodes)
    for tensor in [one for one in branch.initializer if one.name in tensors]:
        graph.initializer.append(tensor)
        branch.initializer.remove(tensor)
    for node in nodes:
        outside = deepcopy(node)
        branch.node.remove(node)
        yield outside
