"""Plans of fused convolutions: engines that cuDNN's heuristics choose, with or without a GPU.

A plan is JSON. It holds the graph, the properties of the GPU and the engine with its parameters;
the exact version of cuDNN that wrote it loads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from byoc_mlir.backends.cudnn.constants import (
    COMPILED_AT_RUN_TIME,
    HEURISTICS_A,
    HEURISTICS_FALLBACK,
    Attribute,
    DataType,
    DescriptorKind,
    Numerics,
    Type,
)
from byoc_mlir.backends.cudnn.convolutions import FusedConvolution
from byoc_mlir.backends.cudnn.descriptors import BackendDescriptor, OwnedDescriptors
from byoc_mlir.backends.cudnn.graphs import graph_of
from byoc_mlir.backends.cudnn.library import Cudnn, load_cudnn
from byoc_mlir.backends.cudnn.properties import device_properties
from byoc_mlir.errors import BackendError

_INACCURATE = frozenset(
    {
        Numerics.REDUCED_PRECISION_REDUCTION,
        Numerics.FFT,
        Numerics.NONDETERMINISTIC,
        Numerics.WINOGRAD_TILE_6X6,
        Numerics.WINOGRAD_TILE_13X13,
    }
)
"""Notes of engines whose errors are larger than those of sums in `f32`, or differ by the run."""
_ROUNDING = frozenset({Numerics.TENSOR_CORE, Numerics.DOWN_CONVERT_INPUTS})
"""Notes of engines that round operands of `f32`."""

_MOST_NOTES = 16
_MOST_WORKSPACE = 256 << 20

_MOST_PLANS = 1024
"""Plans that a process keeps; those of ResNet-50 are 24."""


@dataclass(frozen=True)
class Plan:
    """A plan of a fused convolution."""

    json: bytes
    workspace_bytes: int
    engine: int
    """Number of the engine among those of cuDNN."""
    notes: frozenset[int]
    """Numerical notes of the engine, as in `Numerics`."""


def plan_of(convolution: FusedConvolution) -> Plan:
    """Returns the plan that cuDNN expects to be the fastest.

    Raises:
        BackendError: there is no cuDNN, no GPU to plan for, or no engine for the convolution.
    """
    return _planned(convolution, load_cudnn(), device_properties())


@lru_cache(_MOST_PLANS)
def _planned(convolution: FusedConvolution, library: Cudnn, properties: bytes) -> Plan:
    with OwnedDescriptors(library) as descriptors:
        device = descriptors.new(DescriptorKind.DEVICE_PROPERTIES)
        device.text(Attribute.DEVICE_JSON, properties).finalize()
        graph = graph_of(descriptors, convolution)
        planner = _EngineSearch(descriptors, device, graph, _refused(convolution))
        plan = next(planner.plans(), None)
    if plan is None:
        raise BackendError(
            f"cuDNN {library.version_text} has no precompiled engine of full precision for"
            f" {convolution}"
        )
    return plan


def _refused(convolution: FusedConvolution) -> frozenset[int]:
    """Returns the notes of engines that are not chosen."""
    is_full = convolution.type_ is DataType.F32 and not convolution.may_round
    return _INACCURATE | _ROUNDING if is_full else _INACCURATE


@dataclass
class _EngineSearch:
    """Search for the engines of a graph."""

    descriptors: OwnedDescriptors
    device: BackendDescriptor
    graph: BackendDescriptor
    refused: frozenset[int]

    def plans(self) -> Iterator[Plan]:
        """Yields the plans, the fastest first, as the heuristics expect."""
        for mode in (HEURISTICS_A, HEURISTICS_FALLBACK):
            for configuration in self._configurations(mode):
                plan = self._plan(configuration)
                if plan is not None:
                    yield plan

    def _configurations(self, mode: int) -> Iterator[BackendDescriptor]:
        heuristics = self.descriptors.new(DescriptorKind.HEURISTICS)
        heuristics.descriptors(Attribute.HEURISTICS_GRAPH, self.graph)
        heuristics.set(Attribute.HEURISTICS_MODE, Type.HEURISTICS_MODE, mode)
        heuristics.descriptors(Attribute.HEURISTICS_DEVICE, self.device)
        try:
            heuristics.finalize()
        except BackendError:
            return  # it has no engine in this mode
        most = heuristics.count(Attribute.HEURISTICS_RESULTS, Type.DESCRIPTOR)
        found = [self.descriptors.new(DescriptorKind.ENGINE_CONFIGURATION) for _ in range(most)]
        yield from found[: heuristics.find(Attribute.HEURISTICS_RESULTS, found)]

    def _plan(self, configuration: BackendDescriptor) -> Plan | None:
        """Returns the plan of an engine; `None` if it is not accepted."""
        engine = self.descriptors.new(DescriptorKind.ENGINE)
        configuration.find(Attribute.CONFIGURATION_ENGINE, [engine])
        notes = engine.found(Attribute.ENGINE_NUMERICAL_NOTES, Type.NUMERICAL_NOTE, _MOST_NOTES)
        behavior = engine.found(Attribute.ENGINE_BEHAVIOR_NOTES, Type.BEHAVIOR_NOTE, _MOST_NOTES)
        if COMPILED_AT_RUN_TIME in behavior or not self.refused.isdisjoint(notes):
            return None
        plan = self.descriptors.new(DescriptorKind.PLAN)
        plan.descriptors(Attribute.PLAN_CONFIGURATION, configuration)
        plan.descriptors(Attribute.PLAN_DEVICE, self.device)
        try:
            plan.finalize()
        except BackendError:
            return None  # the engine does not support the graph; the next one may
        (workspace,) = plan.found(Attribute.PLAN_WORKSPACE_BYTES, Type.INT64)
        if workspace > _MOST_WORKSPACE:
            return None
        (index,) = engine.found(Attribute.ENGINE_INDEX, Type.INT64)
        return Plan(plan.found_text(Attribute.PLAN_JSON), workspace, index, frozenset(notes))
