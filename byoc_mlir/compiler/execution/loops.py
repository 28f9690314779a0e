"""Models with loops that run iteration by iteration, between parts of native code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from onnx import ModelProto

from byoc_mlir.compiler.execution.kind import Compilation, PartCompiler
from byoc_mlir.compiler.execution.split import stage_source
from byoc_mlir.compiler.source import Source
from byoc_mlir.dialects.relay.evaluate.onnx import reference_outputs
from byoc_mlir.frontend.files.check import opset_versions
from byoc_mlir.frontend.files.tensors import TensorReader
from byoc_mlir.frontend.inferred import known_sizes
from byoc_mlir.frontend.known_ops import check_nodes
from byoc_mlir.frontend.loops.ends import body_of
from byoc_mlir.frontend.loops.growing import (
    LoopBody,
    growing_loops,
    grown_axes,
    parts_around_loops,
)
from byoc_mlir.frontend.loops.invariants import with_invariants_outside
from byoc_mlir.frontend.stages.stage import stage_model
from byoc_mlir.frontend.value import Array
from byoc_mlir.runtime import plan
from byoc_mlir.runtime.execution.loop import BodyCompiler, LoadedLoop
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.execution.staged import LoadedStaged
from byoc_mlir.runtime.plan import LoopNames
from byoc_mlir.runtime.report import ReportRow


def around_loops(source: Source, _: Compilation, compile_part: PartCompiler) -> LoadedStaged | None:
    """Returns a model with loops that run iteration by iteration, or `None` for another model.

    Args:
        compile_part: function that compiles a part without such loops, or the body of such a loop.
    """
    assert isinstance(source.model, ModelProto)
    loops = growing_loops(source.model)
    if not loops:
        return None
    check_nodes(source.model)
    model = with_invariants_outside(source.model, loops)
    parts = parts_around_loops(model, loops)
    known = known_sizes(model)

    def compile_stage(number: int, arrays: Mapping[str, Array] | None) -> LoadedNode:
        stage = parts[number].stage
        if parts[number].is_apart:
            body = LoopBody(model, stage, known)
            return _loop(body, source, partial(compile_body, number, body))
        part = stage_model(model, stage, arrays, known)
        return compile_part(stage_source(part, number + 1, stage, source))

    def compile_body(
        number: int, body: LoopBody, arrays: Mapping[str, Array], changing: Mapping[str, set[int]]
    ) -> LoadedNode:
        as_model = body.as_model(arrays, changing)
        return compile_part(stage_source(as_model, number + 1, body.as_stage(), source))

    stages = tuple(plan.PlanStage(part.stage.inputs) for part in parts)
    sequence = plan.Staged(source.inputs, source.outputs, stages)
    first = {} if parts[0].is_apart else {0: compile_stage(0, None)}
    return LoadedStaged(sequence, compile_stage, first)


def _loop(body: LoopBody, source: Source, compile_body: BodyCompiler) -> LoadedLoop:
    changing: dict[str, set[int]] = {}
    for name, axis in grown_axes(body.loop):
        changing.setdefault(name, set()).add(axis)
    row = ReportRow(
        *(body.loop.name, "Loop", "host"),
        reason=f"{', '.join(changing)} grows, so that iterations are called one by one",
        inputs=tuple(filter(None, body.loop.input)),
        outputs=tuple(filter(None, body.loop.output)),
    )
    constants = dict(_constants(body, source.tensors))
    loop = plan.Loop(row, _names(body), constants, body.stage.outputs)
    return LoadedLoop(loop, changing, compile_body)


def _names(body: LoopBody) -> LoopNames:
    loop, graph = body.loop, body_of(body.loop)
    trip_count, condition, *initial = loop.input
    number, active, *states = (value.name for value in graph.input)
    goes_on, *results = (value.name for value in graph.output)
    missing = [""] * (len(results) - len(loop.output))
    return LoopNames(
        *(trip_count, condition, tuple(initial)),
        *(number, active, tuple(states), tuple(body.captured)),
        *(goes_on, tuple(results[: len(states)]), tuple(results[len(states) :])),
        (*loop.output, *missing),
    )


def _constants(body: LoopBody, tensors: TensorReader) -> Iterator[tuple[str, Any]]:
    """Yields the constants among a loop's inputs, with their names in the body and in its
    segment.
    """
    stage, opsets = body.stage, opset_versions(body.model)
    wanted = {*body.loop.input, *stage.outputs}
    for tensor in stage.initializers:
        if tensor.name in wanted:
            yield tensor.name, tensors.array(tensor)
    for sparse in stage.sparse_initializers:
        if sparse.values.name in wanted:
            yield sparse.values.name, tensors.dense_array(sparse)
    for node in stage.nodes:
        if node.op_type == "Constant" and node.output[0] in wanted:
            (value,) = reference_outputs(node, (), opsets)
            yield node.output[0], value
