"""Models whose shapes depend on computed values: every stage is compiled as a model of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from onnx import ModelProto

from byoc_mlir.compiler.source import Source
from byoc_mlir.compiler.symbolic import SymbolicModel
from byoc_mlir.frontend.inferred import known_sizes
from byoc_mlir.frontend.inputs import model_inputs
from byoc_mlir.frontend.split import Stage, split_model, stage_model, trimmed
from byoc_mlir.frontend.value import Array
from byoc_mlir.runtime import Executable
from byoc_mlir.runtime.staged import ExecutableStage, StagedExecutable


def compile_in_stages(
    source: Source, compile_source: Callable[[Source], Executable]
) -> StagedExecutable | None:
    """The executable of a model that has to run in several stages, `None` for other models.

    Args:
        compile_source: compiles a model that runs in one.
    """
    model = source.model
    stages = split_model(model) if isinstance(model, ModelProto) else ()
    if len(stages) < 2 or not isinstance(model, ModelProto):
        return None

    known = known_sizes(model)

    def compile_stage(number: int, stage: Stage, arrays: Mapping[str, Array] | None) -> Executable:
        part = stage_model(model, stage, arrays, known)
        return compile_source(stage_source(part, number, stage, source))

    return StagedExecutable(
        source.inputs,
        source.outputs,
        [
            ExecutableStage(
                stage.inputs,
                partial(compile_stage, number, stage),
                partial(trimmed, trims=stage.trims),
            )
            for number, stage in enumerate(stages, 1)
        ],
        compile_stage(1, stages[0], None),
    )


def stage_source(part: ModelProto, number: int, stage: Stage, source: Source) -> Source:
    """A stage of a source as one of its own; `part` is its model, `number` counts from 1."""
    inputs = model_inputs(part)
    is_fixed = all(info.is_static for info in inputs)
    symbolic = None if is_fixed else SymbolicModel(part, source.tensors)
    name = (*source.part, f"part-{number}")
    return Source(inputs, stage.outputs, part, source.tensors, symbolic, name)
