"""Loops with a computed trip count that carry growing tensors, such as a decoder's cache.

The size of such a tensor after the loop is not known before the loop has run, so native code cannot
contain the loop. Instead, its body becomes a separate model, which is called once per iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from onnx import ModelProto, NodeProto

from byoc_mlir.frontend.graphs import attribute_of
from byoc_mlir.frontend.inferred import Sizes
from byoc_mlir.frontend.loops.ends import body_of, ends_when_it_runs, has_body
from byoc_mlir.frontend.loops.values import Graph
from byoc_mlir.frontend.order import captured_names, defined_names, ordered_nodes, read_names
from byoc_mlir.frontend.stages.parts import ModelPart, parts_around
from byoc_mlir.frontend.stages.size_operands import data_of
from byoc_mlir.frontend.stages.stage import Stage, stage_model
from byoc_mlir.frontend.value import Array


def growing_loops(model: ModelProto) -> frozenset[str]:
    """Returns the names of such loops' first results, in a checked model."""
    graph = model.graph
    loops = [node for node in graph.node if any(grown_axes(node))]
    if not loops:
        return frozenset()
    known = {tensor.name for tensor in graph.initializer}
    nodes = ordered_nodes(graph.node, defined_names(graph))
    data = data_of(nodes, {value.name for value in graph.input} - known)
    known.update(name for node in nodes if node.op_type == "Constant" for name in node.output)
    return frozenset(
        first_result(loop)
        for loop in loops
        if ends_when_it_runs(loop, known.__contains__) or loop.input[0] in data
    )


def parts_around_loops(model: ModelProto, loops: Set[str]) -> tuple[ModelPart, ...]:
    """Splits a checked model into parts, so that each of these loops is alone in a part."""

    def is_apart(node: NodeProto) -> bool:
        return node.op_type == "Loop" and first_result(node) in loops

    return tuple(one for part in parts_around(model, is_apart) for one in _single(part))


def first_result(loop: NodeProto) -> str:
    """Returns the name of a loop's first used result."""
    return next(filter(None, loop.output), "")


def _single(part: ModelPart) -> Iterator[ModelPart]:
    """Splits a part with several loops into parts of one loop each; the last part has the
    constants.
    """
    loops = [node for node in part.stage.nodes if node.op_type == "Loop"]
    if not part.is_apart or len(loops) == 1:
        yield part
        return
    made = {name: loop for loop in loops for name in filter(None, loop.output)}
    read = {name for loop in loops for name in read_names(loop)}
    wanted = {*part.stage.outputs, *read & made.keys()}
    for loop in loops:
        given = sorted(name for name in read_names(loop) if name in made)
        free = set(part.stage.outputs) - made.keys() if loop is loops[-1] else set[str]()
        stage = Stage(
            (*part.stage.inputs, *dict.fromkeys(given)),
            tuple(sorted(name for name in wanted if made.get(name) is loop or name in free)),
            tuple(node for node in part.stage.nodes if node is loop or node.op_type != "Loop"),
            part.stage.initializers,
            part.stage.sparse_initializers,
        )
        yield ModelPart(stage, True)


def grown_axes(node: NodeProto) -> Iterator[tuple[str, int]]:
    """Yields the name and axis of each carried value that the body of a `Loop` extends.

    The name is the one in the body; the axis may be negative.
    """
    if node.op_type != "Loop" or node.domain or len(node.input) < 3 or not has_body(node):
        return
    body = body_of(node)
    inner = Graph(body)
    for formal, update in zip(body.input[2:], body.output[1:], strict=False):
        longer = inner.producer(inner.uncast(update.name), "Concat")
        if longer is not None and formal.name in map(inner.uncast, longer.input):
            yield formal.name, attribute_of(longer, "axis").i


@dataclass(frozen=True)
class LoopBody:
    """Body of a loop that is a segment of a model, and becomes a separate model."""

    model: ModelProto
    """Model with the loop."""
    stage: Stage
    """Segment with the loop, and the constants that it reads."""
    known: Mapping[str, Sizes]
    """Sizes of the model's tensors that are the same in every run."""

    @property
    def loop(self) -> NodeProto:
        """Returns the `Loop` node."""
        return next(node for node in self.stage.nodes if node.op_type == "Loop")

    def as_stage(self) -> Stage:
        """Returns the body as a segment with the loop's inputs and the body's results."""
        body = body_of(self.loop)
        constants = [node for node in self.stage.nodes if node.op_type != "Loop"]
        return Stage(
            (*(value.name for value in body.input), *self.captured),
            tuple(dict.fromkeys(value.name for value in body.output)),
            (*constants, *body.node),
            (*self.stage.initializers, *body.initializer),
            (*self.stage.sparse_initializers, *body.sparse_initializer),
        )

    @property
    def captured(self) -> Sequence[str]:
        """Returns the names of values that the body captures from other segments."""
        captured = captured_names(body_of(self.loop))
        return [name for name in self.stage.inputs if name in captured]

    def as_model(self, arrays: Mapping[str, Array], changing: Mapping[str, set[int]]) -> ModelProto:
        """Returns the body as a model.

        Args:
            arrays: examples of the body's inputs.
            changing: axes of carried values whose size changes between iterations.
        """
        carried = zip(body_of(self.loop).input[2:], self.loop.input[2:], strict=True)
        given = {formal.name: self.known.get(name) for formal, name in carried}
        known = {
            **self.known,
            **{name: sizes for name, sizes in given.items() if sizes is not None},
        }
        for name, axes in changing.items():
            if name in known:
                known[name] = _opened(known[name], axes)
        return stage_model(self.model, self.as_stage(), arrays, known)


def _opened(sizes: Sizes, axes: Iterable[int]) -> Sizes:
    opened = {axis % len(sizes) for axis in axes}
    return tuple(None if axis in opened else size for axis, size in enumerate(sizes))
