"""Models cut into parts, so that certain nodes have separate parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass

import onnx

from byoc_mlir.frontend.order import defined_names, named_copies, ordered_nodes, read_names
from byoc_mlir.frontend.stages.stage import Stage


@dataclass(frozen=True)
class ModelPart:
    """Part of a model, which runs after the previous parts."""

    stage: Stage
    is_apart: bool
    """True if the part consists of nodes that `is_apart` selected."""


def parts_around(
    model: onnx.ModelProto, is_apart: Callable[[onnx.NodeProto], bool]
) -> tuple[ModelPart, ...]:
    """Cuts a checked model into parts, in their order.

    Each part contains the nodes of the constants that it reads.

    Args:
        is_apart: function that returns True for a node that must be in a part without other nodes.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    constants |= {sparse.values.name for sparse in model.graph.sparse_initializer}
    nodes = ordered_nodes(model.graph.node, defined_names(model.graph))
    makers: dict[str, onnx.NodeProto] = {}
    levels: dict[str, int] = {}
    members: list[list[onnx.NodeProto]] = []
    for node in named_copies(nodes):
        reads = [read for read in read_names(node) if read not in constants and read not in makers]
        if node.op_type == "Constant":
            makers.update((output, node) for output in node.output)
            continue
        level = max((levels.get(read, 0) for read in reads), default=0)
        level += level % 2 != is_apart(node)  # odd levels have the selected nodes
        members += [[] for _ in range(level + 1 - len(members))]
        members[level].append(node)
        levels.update((output, level) for output in node.output)
    return tuple(_parts(model.graph, members, constants, makers))


def _parts(
    graph: onnx.GraphProto,
    members: list[list[onnx.NodeProto]],
    constants: Set[str],
    makers: Mapping[str, onnx.NodeProto],
) -> Iterator[ModelPart]:
    results = {output.name for output in graph.output}
    reads = [{name for node in nodes for name in read_names(node)} for nodes in members]
    free = results & (constants | makers.keys())  # outputs that no part computes
    if free:
        reads[-1] |= free
    for level, nodes in enumerate(members):
        if not nodes:
            continue
        made = {output for node in nodes for output in node.output if output}
        later = results.union(*reads[level + 1 :])
        own = {id(makers[name]): makers[name] for name in reads[level] if name in makers}
        is_last = level == len(members) - 1
        stage = Stage(
            tuple(sorted(reads[level] - made - constants - makers.keys())),
            tuple(sorted(made & later | (free if is_last else set[str]()))),
            (*own.values(), *nodes),
            tuple(tensor for tensor in graph.initializer if tensor.name in reads[level]),
            tuple(one for one in graph.sparse_initializer if one.values.name in reads[level]),
        )
        yield ModelPart(stage, bool(level % 2))
