"""Models split at data-dependent shapes into segments.

The number of rows of NonMaxSuppression, or of a Loop with an early exit, is only known after it has
run. Such a node ends its segment: the segment returns the maximum number of rows, and a count; the
next segment takes the first rows, up to that count.

A segment also ends with a node that computes a size, such as the length of a Range. In the next
segment that size is a symbol. If the condition of an `If` follows from sizes alone, it is computed
in the segment of the `If`, where the sizes are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx

from byoc_mlir.frontend.external import is_random
from byoc_mlir.frontend.graphs import STAGE_DOMAIN, attribute_of
from byoc_mlir.frontend.loops.ends import body_of, ends_when_it_runs
from byoc_mlir.frontend.loops.values import Graph
from byoc_mlir.frontend.order import named_copies, needed_nodes, ordered_nodes, read_names
from byoc_mlir.frontend.rounded_sizes import GIVE_SIZES
from byoc_mlir.frontend.stages.size_operands import SizeValues
from byoc_mlir.frontend.stages.stage import Stage, stage_model
from byoc_mlir.frontend.stages.suggestions import (
    AXIS_OF_COUNT,
    collects,
    finds_its_size,
    finds_sizes,
    may_have_stages,
)
from byoc_mlir.tensors import Trim

_CONSTANT = -1

MOST_ROWS = 1 << 16
"""Maximum number of rows of a loop with an early exit, whose memory is allocated for all rows."""


def split_model(model: onnx.ModelProto) -> tuple[Stage, ...]:
    """Splits a checked model into segments.

    The result is empty if no split is needed. It has one segment if sizes depend only on inputs'
    values. Nodes that depend on constants only are in every segment that needs them.
    """
    if not may_have_stages(model):
        return ()
    splitter = _Splitter(model)
    return splitter.stages() if splitter.has_stages else ()


def first_stage(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model of the first segment, or the model itself if it is not split."""
    stages = split_model(model)
    return stage_model(model, stages[0], None, {}) if len(stages) > 1 else model


class _Splitter:
    """Assignment of each value to the first segment that has it."""

    def __init__(self, model: onnx.ModelProto):
        self._graph = graph = model.graph
        dense = {tensor.name for tensor in graph.initializer}
        sparse = {tensor.values.name for tensor in graph.sparse_initializer}
        self._constants = dense | sparse
        self._arguments = [v.name for v in graph.input if v.name not in self._constants]
        self._level = dict.fromkeys(self._constants, _CONSTANT) | dict.fromkeys(self._arguments, 0)
        self._constant_nodes: list[onnx.NodeProto] = []
        self._of_sizes: list[onnx.NodeProto] = []
        self._sizes: set[str] = set()
        self._arithmetic: list[onnx.NodeProto] = []
        self._stages: list[list[onnx.NodeProto]] = [[]]
        self._trims: dict[str, Trim] = {}
        nodes = ordered_nodes(graph.node, self._level.keys())
        self._size_values = SizeValues(model, nodes, self._constants, self._arguments)
        has_values = bool(self._size_values.computed or self._size_values.given)
        self.has_stages = has_values or finds_sizes(nodes)
        if self.has_stages:
            for node in named_copies(nodes):
                self._place(node)

    def _place(self, node: onnx.NodeProto) -> None:
        level = max((self._level[read] for read in read_names(node)), default=_CONSTANT)
        if level == _CONSTANT:
            self._constant_nodes.append(node)
        elif self._ends_stage(node):
            self._make_bounded(node)
            self._stages[level].append(node)
            level += 1
        else:
            self._stages[level].append(node)
            if self._follows_from_sizes(node):
                self._of_sizes.append(node)
                self._sizes.update(filter(None, node.output))
            if node.op_type in GIVE_SIZES or self._size_values.is_arithmetic(node):
                self._arithmetic.append(node)
            level += not self._size_values.computed.isdisjoint(node.output)
        if level == len(self._stages):
            self._stages.append([])
        self._level.update((output, level) for output in node.output if output)

    def _ends_stage(self, node: onnx.NodeProto) -> bool:
        """True if the size of the node's output is only known after the node has run."""
        if collects(node):
            return self._may_end_early(node)
        keeps_it = node.op_type == "Compress" and all(map(self._is_known, node.input[1:2]))
        return finds_its_size(node) and not keeps_it

    def _follows_from_sizes(self, node: onnx.NodeProto) -> bool:
        """True if the node's output follows from shapes alone."""
        known = (self._is_known(name) or name in self._sizes for name in read_names(node))
        return node.op_type in GIVE_SIZES or (all(known) and not is_random(node))

    def _may_end_early(self, loop: onnx.NodeProto) -> bool:
        """True if a loop has an early exit, and a constant trip count of at most `MOST_ROWS`."""
        most = Graph(self._graph).number(loop.input[0]) if loop.input[0] else None
        return most is not None and most <= MOST_ROWS and ends_when_it_runs(loop, self._is_known)

    def _is_known(self, name: str) -> bool:
        return self._level.get(name) == _CONSTANT

    def _make_bounded(self, node: onnx.NodeProto) -> None:
        if node.op_type == "Loop":
            self._make_bounded_loop(node)
            return
        axis = AXIS_OF_COUNT[node.op_type]
        if axis is None:
            axis = attribute_of(node, "axis").i
        output, count = node.output[0], f"{node.output[0]}:count"
        node.domain = STAGE_DOMAIN
        node.output.append(count)
        self._trims[output] = Trim(count, axis)

    def _make_bounded_loop(self, node: onnx.NodeProto) -> None:
        node.output.extend([""] * (len(body_of(node).output) - 1 - len(node.output)))
        rows = [name for name in node.output[len(node.input) - 2 :] if name]
        count = f"{rows[0]}:count"
        node.domain = STAGE_DOMAIN
        node.output.append(count)
        self._trims |= {name: Trim(count, 0) for name in rows}

    def stages(self) -> tuple[Stage, ...]:
        """Returns the segments in order; a single one means that no split is needed."""
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
            again = self._repeated(nodes)
            made.update(name for node in again for name in node.output)
            nodes = [*again, *nodes]
            read = {name for node in nodes for name in read_names(node)} | (outputs - made)
            constants = {name for name in read if self._level.get(name, 0) == _CONSTANT}
            inputs = read - constants - made
            needed |= inputs
            stages.append(self._stage(number, nodes, sorted(inputs), sorted(outputs), constants))
        return tuple(reversed(stages))

    def _repeated(self, nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
        """Returns the nodes of earlier segments that compute from shapes the conditions of an `If`
        in `nodes`, and the arithmetic on sizes that `nodes` read.
        """
        made = {output for node in nodes for output in node.output}
        conditions = {node.input[0] for node in nodes if node.op_type == "If"} - made
        again = needed_nodes(self._of_sizes, conditions & self._sizes)
        made.update(name for node in again for name in node.output)
        here = {name for node in nodes for name in read_names(node)}.union(self._arguments)
        arithmetic = [
            node
            for node in self._arithmetic
            if node.op_type not in GIVE_SIZES or node.input[0] in here
        ]
        return [*again, *needed_nodes(arithmetic, self._size_values.read_by(nodes) - made)]

    def _stage(
        self,
        number: int,
        nodes: Sequence[onnx.NodeProto],
        inputs: Sequence[str],
        outputs: Sequence[str],
        constants: Iterable[str],
    ) -> Stage:
        sizes = self._size_values.read_by(nodes) if number else self._size_values.given
        made = needed_nodes(self._constant_nodes, constants)
        names = {*constants, *(name for node in made for name in read_names(node))}
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
            tuple(name for name in inputs if name in sizes),
        )
