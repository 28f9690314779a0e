"""Models whose shapes depend on values: every stage is compiled as a model of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from onnx import ModelProto

from byoc_mlir.artifact import write
from byoc_mlir.compiler.source import Source
from byoc_mlir.compiler.symbolic import SymbolicModel
from byoc_mlir.frontend.inferred import Sizes, known_sizes
from byoc_mlir.frontend.inputs import model_inputs
from byoc_mlir.frontend.known_ops import check_nodes
from byoc_mlir.frontend.stages.split import split_model
from byoc_mlir.frontend.stages.stage import Stage, stage_model
from byoc_mlir.frontend.value import Array
from byoc_mlir.runtime import Executable
from byoc_mlir.runtime.executables.staged import ExecutableStage, StagedExecutable


@dataclass(frozen=True)
class CutModel:
    """A model that has to run in stages."""

    source: Source
    model: ModelProto
    stages: tuple[Stage, ...]
    known: Mapping[str, Sizes]
    """The sizes of tensors that never change."""

    @staticmethod
    def of(source: Source) -> CutModel | None:
        """A model in its stages, `None` for one that runs in one, whatever its inputs hold."""
        model = source.model
        if not isinstance(model, ModelProto):
            return None
        stages = split_model(model)
        if len(stages) < 2 and not any(stage.sizes for stage in stages):
            return None
        return CutModel(source, model, stages, known_sizes(model))

    def stage(self, number: int, arrays: Mapping[str, Array] | None) -> Source:
        """A stage as a source of its own.

        Args:
            number: counts from 0.
            arrays: what its inputs are like; `None` for a first one that takes the model's own.
        """
        stage = self.stages[number]
        part = stage_model(self.model, stage, arrays, self.known)
        return stage_source(part, number + 1, stage, self.source)


def compile_in_stages(
    source: Source,
    compile_stage: Callable[[int, Source], Executable],
    remake: Callable[[], Executable | None] | None = None,
) -> StagedExecutable | None:
    """The executable of a model that has to run in stages, `None` for other models.

    Args:
        compile_stage: compiles a stage, a model that runs in one; they count from 0.
        remake: as for `StagedExecutable`.
    """
    cut = CutModel.of(source)
    if cut is None:
        return None

    def compile_numbered(number: int, arrays: Mapping[str, Array] | None) -> Executable:
        return compile_stage(number, cut.stage(number, arrays))

    stages = [
        ExecutableStage(stage.inputs, partial(compile_numbered, number), stage.trims, stage.sizes)
        for number, stage in enumerate(cut.stages)
    ]
    first = None
    if cut.stages[0].sizes:
        check_nodes(cut.model)  # it is imported when the first values come
    else:
        first = compile_numbered(0, None)
    return StagedExecutable(source.inputs, source.outputs, stages, first, remake, write)


def stage_source(part: ModelProto, number: int, stage: Stage, source: Source) -> Source:
    """A stage of a source as one of its own; `part` is its model, `number` counts from 1."""
    inputs = model_inputs(part)
    is_fixed = all(info.is_static for info in inputs)
    tensors = source.tensors.for_another()
    symbolic = None if is_fixed else SymbolicModel(part, tensors)
    name = (*source.part, f"part-{number}")
    return Source(inputs, stage.outputs, part, tensors, symbolic, name)
