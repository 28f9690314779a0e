"""Models with strings: interpreted parts of nodes on strings, between compiled parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto, NodeProto

from byoc_mlir.backends import get_backend
from byoc_mlir.compiler.execution.kind import Compilation, PartCompiler
from byoc_mlir.compiler.execution.split import stage_source
from byoc_mlir.compiler.partition.fallback import interpreter_for
from byoc_mlir.compiler.source import Source
from byoc_mlir.dialects.locations import node_location
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.frontend.inferred import known_sizes
from byoc_mlir.frontend.known_ops import check_nodes
from byoc_mlir.frontend.order import read_names
from byoc_mlir.frontend.stages.stage import Stage, stage_model
from byoc_mlir.frontend.string_labels import with_looked_up_strings
from byoc_mlir.frontend.strings import interpreted_nodes, string_parts
from byoc_mlir.frontend.value import Array
from byoc_mlir.runtime import plan
from byoc_mlir.runtime.execution.interpreted import LoadedInterpreted
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.execution.staged import LoadedStaged
from byoc_mlir.runtime.report import Report, ReportRow


def around_strings(
    source: Source, compilation: Compilation, compile_part: PartCompiler
) -> LoadedStaged | None:
    """Returns a model with tensors of strings, or `None` for another model.

    Args:
        compile_part: function that compiles a part without strings.

    Raises:
        FallbackForbiddenError: `fallback` is `"forbid"`, and some nodes have strings.
        UnsupportedModelError: no interpreter supports some of the nodes on strings.
    """
    assert isinstance(source.model, ModelProto)
    model = with_looked_up_strings(source.model)
    parts = string_parts(model)
    if not parts:
        return None
    check_nodes(model)
    nodes = [node for part in parts if part.is_apart for node in part.stage.nodes]
    interpreter = interpreter_for(_carried(model, nodes), compilation.options)
    known = known_sizes(model)

    def compile_stage(number: int, arrays: Mapping[str, Array]) -> LoadedNode:
        stage = parts[number].stage
        model_part = stage_model(model, stage, arrays, known)
        if parts[number].is_apart:
            source.tensors.inline(model_part.graph)
            run = get_backend(interpreter).interpreter(model_part)
            interpreted = plan.Interpreted(stage.outputs, _report(stage, interpreter))
            return LoadedInterpreted(interpreted, run)
        return compile_part(stage_source(model_part, number + 1, stage, source))

    stages = tuple(plan.PlanStage(part.stage.inputs) for part in parts)
    sequence = plan.Staged(source.inputs, source.outputs, stages)
    return LoadedStaged(sequence, compile_stage, {})


def _carried(model: ModelProto, nodes: Sequence[NodeProto]) -> list[OnnxNodeOp]:
    """Returns the nodes to interpret, without operands: strings have no type in the IR."""
    found: list[OnnxNodeOp] = []
    for name, node, opset in interpreted_nodes(model, nodes):
        found.append(OnnxNodeOp.of(node, opset, (), ()))
        found[-1].location = node_location(name)
    return found


def _report(stage: Stage, backend: str) -> Report:
    return Report(
        tuple(
            ReportRow(
                *(node.name, node.op_type, backend),
                reason="it works on strings",
                inputs=tuple(read_names(node)),
                outputs=tuple(node.output),
            )
            for node in stage.nodes
        )
    )
