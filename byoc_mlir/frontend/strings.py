"""Models with tensors of strings, cut into parts with strings and parts that can be compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx
from onnx import TensorProto

from byoc_mlir.frontend.inferred import inferred_graph
from byoc_mlir.frontend.order import names_of, ordered_nodes, read_names
from byoc_mlir.frontend.stage import Stage


@dataclass(frozen=True)
class Part:
    """Some of a model's nodes, which run after those of the parts before."""

    stage: Stage
    has_strings: bool


def string_parts(model: onnx.ModelProto) -> tuple[Part, ...]:
    """The parts of a checked model in order, none when it has no strings."""
    strings = set(string_names(model)) if _mentions_strings(model) else set[str]()
    if not strings:
        return ()
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = ordered_nodes(
        model.graph.node, {*constants, *(value.name for value in model.graph.input)}
    )
    makers: dict[str, onnx.NodeProto] = {}
    levels: dict[str, int] = {}
    members: list[list[onnx.NodeProto]] = []
    for node, name in zip(nodes, names_of(nodes), strict=True):
        placed = onnx.NodeProto()
        placed.CopyFrom(node)
        placed.name = name
        reads = [read for read in read_names(node) if read not in constants and read not in makers]
        if node.op_type == "Constant":
            makers.update((output, placed) for output in node.output)
            continue
        level = max((levels.get(read, 0) for read in reads), default=0)
        has_strings = not strings.isdisjoint((*read_names(node), *node.output))
        level += level % 2 != has_strings  # odd levels are those with strings
        members += [[] for _ in range(level + 1 - len(members))]
        members[level].append(placed)
        levels.update((output, level) for output in node.output)
    return tuple(_parts(model.graph, members, constants, makers)) if members else ()


def _parts(
    graph: onnx.GraphProto,
    members: list[list[onnx.NodeProto]],
    constants: Mapping[str, TensorProto],
    makers: Mapping[str, onnx.NodeProto],
) -> Iterator[Part]:
    results = {output.name for output in graph.output}
    reads = [{name for node in nodes for name in read_names(node)} for nodes in members]
    free = results & (constants.keys() | makers.keys())  # outputs that no part computes
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
            tuple(sorted(reads[level] - made - constants.keys() - makers.keys())),
            tuple(sorted(made & later | (free if is_last else set[str]()))),
            (*own.values(), *nodes),
            tuple(constants[name] for name in sorted(reads[level] & constants.keys())),
            (),
        )
        yield Part(stage, bool(level % 2))


def _mentions_strings(model: onnx.ModelProto) -> bool:
    graph = model.graph
    return (
        any(value.type.tensor_type.elem_type == TensorProto.STRING for value in graph.input)
        or any(tensor.data_type == TensorProto.STRING for tensor in graph.initializer)
        or any(map(_makes_strings, graph.node))
    )


def _makes_strings(node: onnx.NodeProto) -> bool:
    for item in node.attribute:
        if item.name in ("value_string", "value_strings", "values_strings", "values_tensor"):
            return True
        if TensorProto.STRING in (item.t.data_type, item.i if item.name == "to" else None):
            return True
    return False


def string_names(model: onnx.ModelProto) -> Iterator[str]:
    """The names of tensors of strings, as far as they are declared or inferred."""
    graph = inferred_graph(model) or model.graph  # where a node is damaged the importer names it
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.elem_type == TensorProto.STRING:
            yield value.name
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.STRING:
            yield tensor.name
