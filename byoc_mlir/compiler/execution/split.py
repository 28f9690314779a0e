"""Models that are split at data-dependent shapes; every segment is a separate model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import ModelProto

from byoc_mlir.compiler.execution.kind import Compilation, PartCompiler
from byoc_mlir.compiler.execution.stages import ModelStages, loaded_stages
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.source import Source, model_source
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.frontend.inferred import Sizes, known_sizes
from byoc_mlir.frontend.known_ops import check_nodes
from byoc_mlir.frontend.stages.split import split_model
from byoc_mlir.frontend.stages.stage import Stage, stage_model
from byoc_mlir.frontend.value import Array
from byoc_mlir.limits import Limits, limited
from byoc_mlir.runtime import plan
from byoc_mlir.runtime.execution.staged import LoadedStaged


@dataclass(frozen=True)
class SplitModel:
    """Model that is split into segments."""

    source: Source
    model: ModelProto
    stages: tuple[Stage, ...]
    known: Mapping[str, Sizes]
    """Constant sizes of tensors."""
    limits: Limits

    @staticmethod
    def of(source: Source, options: CompileOptions) -> SplitModel | None:
        """Returns a model in segments, or `None` if it needs only one."""
        model = source.model
        if not isinstance(model, ModelProto):
            return None
        stages = split_model(model)
        if len(stages) < 2 and not any(stage.sizes for stage in stages):
            return None
        return SplitModel(source, model, stages, known_sizes(model), options.limits)

    @property
    def plan(self) -> plan.Staged:
        """Returns the execution plan of the model, without programs."""
        stages = tuple(plan.PlanStage(one.inputs, (), one.trims, one.sizes) for one in self.stages)
        return plan.Staged(self.source.inputs, self.source.outputs, stages)

    def stage(self, number: int, arrays: Mapping[str, Array] | None) -> Source:
        """Returns a segment as a separate source.

        Args:
            number: number of the segment, from 0.
            arrays: examples of the segment's inputs; `None` for the first segment, if it takes the
                model's inputs.
        """
        with ir_boundary("read"), limited(self.limits):
            stage = self.stages[number]
            part = stage_model(self.model, stage, arrays, self.known)
            return stage_source(part, number + 1, stage, self.source)


def in_stages(source: Source, compilation: Compilation, _: PartCompiler) -> LoadedStaged | None:
    """Returns a model that is split into segments, or `None` for another model."""
    options = compilation.options
    split = SplitModel.of(source, options)
    if split is None:
        return None
    if split.stages[0].sizes:
        check_nodes(split.model)  # it is imported when the first values come
    cached, entry = compilation.cached, None
    if not compilation.is_part:
        if source.external_files:
            cached = None  # where the model is split depends on them
        if cached is not None:
            entry = cached.new_entry(source, options, split.plan.stages)
    return loaded_stages(split.plan, ModelStages(lambda: (split, options), cached, entry))


def stage_source(part: ModelProto, number: int, stage: Stage, source: Source) -> Source:
    """Returns a segment of a source as a separate source.

    Args:
        part: the segment's model.
        number: number of the segment, from 1.
    """
    name = (*source.part, f"part-{number}")
    return model_source(part, stage.outputs, source.tensors.for_another(), name)
