"""Models in which a shape depends on computed values, cut into stages.

A node such as NonMaxSuppression gives as many rows as it finds, and a Loop that ends early collects
as many as it made. Its stage ends with it: the stage gives the most rows there may be and their
count, of which the next stage takes those that count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
from onnx import helper, numpy_helper

from byoc_mlir.frontend.inferred import Sizes
from byoc_mlir.frontend.loop_ends import ends_when_it_runs
from byoc_mlir.frontend.order import names_of, ordered_nodes, read_names
from byoc_mlir.frontend.value import Array
from byoc_mlir.tensors import Trim

BOUNDED_DOMAIN = "byoc"
"""Domain of the ops that give the most rows there may be, and the count: see `ops.bounded`."""

_AXIS_OF_COUNT = {"Compress": None, "NonMaxSuppression": 0, "NonZero": 1}
"""Ops whose output's size is found at run time, with the axis; `None`: their attribute `axis`."""

_CONSTANT = -1

MOST_ROWS = 1 << 16
"""Rows of a loop that ends early for which there is memory."""


@dataclass(frozen=True)
class Stage:
    """One part of a model: names it reads and gives, and its nodes."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[onnx.NodeProto, ...]
    initializers: tuple[onnx.TensorProto, ...]
    sparse_initializers: tuple[onnx.SparseTensorProto, ...]
    trims: Mapping[str, Trim] = field(default_factory=dict[str, Trim])
    """Of outputs; counts are outputs, too."""


def split_model(model: onnx.ModelProto) -> tuple[Stage, ...]:
    """The stages of a checked model, none when it needs no cut.

    Nodes that only constants lead to are in every stage that needs them.
    """
    if not any(_is_dynamic(node) or _collects(node) for node in model.graph.node):
        return ()
    return _Splitter(model.graph).stages()


def stage_model(
    model: onnx.ModelProto,
    stage: Stage,
    arrays: Mapping[str, Array] | None,
    known: Mapping[str, Sizes],
) -> onnx.ModelProto:
    """A stage as a model of its own.

    Args:
        arrays: what its inputs are like; `None` for a first stage, which has the model's own.
        known: the sizes of the model's tensors that never change; those of other dimensions change
            from run to run, so that they stay open.
    """
    graph = onnx.GraphProto(name=model.graph.name)
    declared = {value.name: value for value in model.graph.input}
    for name in stage.inputs:
        graph.input.append(
            declared[name] if arrays is None else _open_input(name, arrays[name], known.get(name))
        )
    graph.node.extend(stage.nodes)
    graph.initializer.extend(stage.initializers)
    graph.sparse_initializer.extend(stage.sparse_initializers)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in stage.outputs)
    result = onnx.ModelProto(ir_version=model.ir_version, graph=graph)
    result.opset_import.extend(model.opset_import)
    result.opset_import.append(helper.make_opsetid(BOUNDED_DOMAIN, 1))
    result.functions.extend(model.functions)
    return result


def _open_input(name: str, array: Array, known: Sizes | None) -> onnx.ValueInfoProto:
    element_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    fixed = known if known is not None and len(known) == array.ndim else (None,) * array.ndim
    shape = [
        f"{name}[{axis}]" if size != array.shape[axis] else size for axis, size in enumerate(fixed)
    ]
    return helper.make_tensor_value_info(name, element_type, shape)


def _is_dynamic(node: onnx.NodeProto) -> bool:
    """Whether the node finds a size; one of more outputs is not valid, and refused at import."""
    is_dynamic = node.op_type in _AXIS_OF_COUNT and node.domain in ("", "ai.onnx")
    return is_dynamic and len(node.output) == 1 and bool(node.output[0])


def _collects(node: onnx.NodeProto) -> bool:
    """Whether the node is a loop whose rows are used; one that is not valid is not asked."""
    is_loop = node.op_type == "Loop" and node.domain in ("", "ai.onnx")
    bodies = [attribute.g for attribute in node.attribute if attribute.name == "body"]
    is_valid = bool(node.input and bodies) and len(node.output) < len(bodies[0].output)
    return is_loop and is_valid and any(node.output[max(len(node.input) - 2, 0) :])


class _Splitter:
    """Gives every value the number of the first stage in which it is there."""

    def __init__(self, graph: onnx.GraphProto):
        self._graph = graph
        dense = {tensor.name for tensor in graph.initializer}
        sparse = {tensor.values.name for tensor in graph.sparse_initializer}
        self._constants = dense | sparse
        self._arguments = [v.name for v in graph.input if v.name not in self._constants]
        self._level = dict.fromkeys(self._constants, _CONSTANT) | dict.fromkeys(self._arguments, 0)
        self._constant_nodes: dict[str, onnx.NodeProto] = {}
        self._stages: list[list[onnx.NodeProto]] = [[]]
        self._trims: dict[str, Trim] = {}
        for node, name in zip(*self._named_nodes(), strict=True):
            self._place(node, name)

    def _named_nodes(self) -> tuple[list[onnx.NodeProto], list[str]]:
        nodes = ordered_nodes(self._graph.node, self._level.keys())
        return nodes, names_of(nodes)

    def _place(self, node: onnx.NodeProto, name: str) -> None:
        level = max((self._level[read] for read in read_names(node)), default=_CONSTANT)
        placed = onnx.NodeProto()
        placed.CopyFrom(node)
        placed.name = name
        if level == _CONSTANT:
            self._constant_nodes.update((output, placed) for output in node.output if output)
        elif self._finds_its_shape(node):
            self._make_bounded(placed)
            self._stages[level].append(placed)
            level += 1
        else:
            self._stages[level].append(placed)
        if level == len(self._stages):
            self._stages.append([])
        self._level.update((output, level) for output in node.output if output)

    def _finds_its_shape(self, node: onnx.NodeProto) -> bool:
        """Whether a size of what the node gives is known when it has run."""
        if _collects(node):
            return self._may_end_early(node)
        keeps_it = node.op_type == "Compress" and all(map(self._is_known, node.input[1:2]))
        return _is_dynamic(node) and not keeps_it

    def _may_end_early(self, loop: onnx.NodeProto) -> bool:
        """Whether a loop ends when it runs, after a number of iterations that is not too large."""
        most = self._number(loop.input[0])
        return most is not None and most <= MOST_ROWS and ends_when_it_runs(loop, self._is_known)

    def _is_known(self, name: str) -> bool:
        return self._level.get(name) == _CONSTANT

    def _number(self, name: str) -> int | None:
        """The integer that a constant is; `None` for what has to be computed."""
        for tensor in self._graph.initializer:
            if tensor.name == name and tensor.data_location != onnx.TensorProto.EXTERNAL:
                return int(numpy_helper.to_array(tensor).reshape(-1)[0])
        node = self._constant_nodes.get(name)
        if node is None or node.op_type != "Constant":
            return None
        values = (attribute.t for attribute in node.attribute if attribute.name == "value")
        return next((int(numpy_helper.to_array(value).reshape(-1)[0]) for value in values), None)

    def _make_bounded(self, node: onnx.NodeProto) -> None:
        if node.op_type == "Loop":
            self._make_bounded_loop(node)
            return
        axis = _AXIS_OF_COUNT[node.op_type]
        if axis is None:
            axis = next((item.i for item in node.attribute if item.name == "axis"), 0)
        output, count = node.output[0], f"{node.output[0]}:count"
        node.domain = BOUNDED_DOMAIN
        node.output.append(count)
        self._trims[output] = Trim(count, axis)

    def _make_bounded_loop(self, node: onnx.NodeProto) -> None:
        (body,) = (attribute.g for attribute in node.attribute if attribute.name == "body")
        node.output.extend([""] * (len(body.output) - 1 - len(node.output)))
        rows = [name for name in node.output[len(node.input) - 2 :] if name]
        count = f"{rows[0]}:count"
        node.domain = BOUNDED_DOMAIN
        node.output.append(count)
        self._trims |= {name: Trim(count, 0) for name in rows}

    def stages(self) -> tuple[Stage, ...]:
        """The stages in order; a single one means that no cut is needed."""
        last = len(self._stages) - 1
        results = [output.name for output in self._graph.output]
        needed: set[str] = set()
        stages: list[Stage] = []
        for number in range(last, -1, -1):
            nodes = self._stages[number]
            made = {output for node in nodes for output in node.output if output}
            outputs = made & (needed | set(results))
            if number == last:
                outputs |= {name for name in results if self._level[name] == _CONSTANT}
            outputs |= {self._trims[name].count for name in outputs if name in self._trims}
            read = {name for node in nodes for name in read_names(node)} | (outputs - made)
            constants = {name for name in read if self._level.get(name, 0) == _CONSTANT}
            inputs = read - constants - made
            needed |= inputs
            stages.append(self._stage(nodes, sorted(inputs), sorted(outputs), constants))
        return tuple(reversed(stages))

    def _stage(
        self,
        nodes: Sequence[onnx.NodeProto],
        inputs: Sequence[str],
        outputs: Sequence[str],
        constants: Iterable[str],
    ) -> Stage:
        made, names = self._closure(constants)
        order = [name for name in self._arguments if name in inputs]
        order += [name for name in inputs if name not in self._arguments]
        return Stage(
            tuple(order),
            tuple(outputs),
            (*made, *nodes),
            tuple(tensor for tensor in self._graph.initializer if tensor.name in names),
            tuple(
                tensor for tensor in self._graph.sparse_initializer if tensor.values.name in names
            ),
            {name: self._trims[name] for name in outputs if name in self._trims},
        )

    def _closure(self, constants: Iterable[str]) -> tuple[list[onnx.NodeProto], set[str]]:
        """The nodes that compute constants, and the names of all initializers they need."""
        pending, names, nodes = list(constants), set[str](), dict[int, onnx.NodeProto]()
        while pending:
            name = pending.pop()
            if name in names:
                continue
            names.add(name)
            node = self._constant_nodes.get(name)
            if node is not None:
                nodes[id(node)] = node
                pending.extend(read_names(node))
        return ordered_nodes(list(nodes.values()), self._constants), names
