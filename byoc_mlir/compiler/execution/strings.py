"""Models with strings: parts of nodes on them, which are interpreted, between compiled parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from onnx import ModelProto, NodeProto

from byoc_mlir.artifact import write
from byoc_mlir.backends import get_backend
from byoc_mlir.compiler.execution.staged import stage_source
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.partition.fallback import interpreter_for
from byoc_mlir.compiler.source import Source
from byoc_mlir.dialects.locations import node_location
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.frontend.inferred import known_sizes
from byoc_mlir.frontend.known_ops import check_nodes
from byoc_mlir.frontend.order import read_names
from byoc_mlir.frontend.stages.parts import Part
from byoc_mlir.frontend.stages.stage import Stage, stage_model
from byoc_mlir.frontend.string_labels import with_looked_up_strings
from byoc_mlir.frontend.strings import interpreted_nodes, string_parts
from byoc_mlir.frontend.value import Array
from byoc_mlir.runtime import Executable
from byoc_mlir.runtime.executables.interpreted import InterpretedExecutable
from byoc_mlir.runtime.executables.staged import ExecutableStage, StagedExecutable
from byoc_mlir.runtime.report import Report, ReportRow


def compile_around_strings(
    source: Source, options: CompileOptions, compile_source: Callable[[Source], Executable]
) -> StagedExecutable | None:
    """The executable of a model with tensors of strings, `None` for other models.

    Args:
        compile_source: compiles a part without strings.

    Raises:
        FallbackForbiddenError: `fallback` is `"forbid"`, and some nodes work on strings.
        UnsupportedModelError: no interpreter takes some of the nodes on strings.
    """
    if not isinstance(source.model, ModelProto):
        return None
    model = with_looked_up_strings(source.model)
    parts = string_parts(model)
    if not parts:
        return None
    check_nodes(model)
    nodes = [node for part in parts if part.is_apart for node in part.stage.nodes]
    interpreter = interpreter_for(_carried(model, nodes), options)
    known = known_sizes(model)

    def compile_part(number: int, part: Part, arrays: Mapping[str, Array]) -> Executable:
        stage = part.stage
        model_part = stage_model(model, stage, arrays, known)
        if part.is_apart:
            source.tensors.inline(model_part.graph)
            run = get_backend(interpreter).interpreter(model_part)
            return InterpretedExecutable(stage.outputs, run, _report(stage, interpreter))
        return compile_source(stage_source(model_part, number, stage, source))

    stages = [
        ExecutableStage(part.stage.inputs, partial(compile_part, number, part))
        for number, part in enumerate(parts, 1)
    ]
    return StagedExecutable(source.inputs, source.outputs, stages, exporter=write)


def _carried(model: ModelProto, nodes: Sequence[NodeProto]) -> list[OnnxNodeOp]:
    """Returns what is to be interpreted, without operands: strings have no type there."""
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
