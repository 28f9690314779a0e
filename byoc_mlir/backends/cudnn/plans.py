"""Plans of fused convolutions: engines that cuDNN's heuristics choose, with or without a GPU.

A plan is JSON. It holds the graph, the properties of the GPU and the engine with its parameters;
the exact version of cuDNN that wrote it loads it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from byoc_mlir.backends.cudnn.constants import (
    ADD,
    COMPILED_AT_RUN_TIME,
    CROSS_CORRELATION,
    HEURISTICS_A,
    HEURISTICS_FALLBACK,
    RELU,
    Attribute,
    DataType,
    DescriptorKind,
    Numerics,
    Type,
)
from byoc_mlir.backends.cudnn.convolutions import FusedConvolution, Role
from byoc_mlir.backends.cudnn.descriptors import BackendDescriptor, OwnedDescriptors
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


ALIGNMENT = 16
"""Alignment of all tensors in bytes, which engines with vectorised loads require."""

_FIRST_VIRTUAL = 100
"""Number of the first tensor that is never in memory."""


def graph_of(descriptors: OwnedDescriptors, convolution: FusedConvolution) -> BackendDescriptor:
    """Returns the finalised graph of a fused convolution.

    Raises:
        BackendError: cuDNN refuses a shape.
    """
    return _OperationGraph(descriptors, convolution).finished()


class _OperationGraph:
    def __init__(self, descriptors: OwnedDescriptors, convolution: FusedConvolution):
        self._new = descriptors.new
        self._convolution = convolution
        self._numbers = count(_FIRST_VIRTUAL)

    def finished(self) -> BackendDescriptor:
        """Returns the graph: the convolution, then sums, then the activation."""
        convolution = self._convolution
        following: list[tuple[int, BackendDescriptor | None]] = []
        if convolution.has_residual:
            following.append((ADD, self._tensor(Role.RESIDUAL, convolution.result)))
        if convolution.has_bias:
            following.append((ADD, self._tensor(Role.BIAS, convolution.bias)))
        if convolution.has_relu:
            following.append((RELU, None))
        values = [self._virtual() for _ in following]
        values.append(self._tensor(Role.RESULT, convolution.result))
        operations = [self._anchor(values[0])]
        for (mode, operand), x, y in zip(following, values, values[1:], strict=False):
            operations.append(self._pointwise(mode, x, operand, y))
        graph = self._new(DescriptorKind.GRAPH)
        return graph.descriptors(Attribute.GRAPH_OPERATIONS, *operations).finalize()

    def _anchor(self, result: BackendDescriptor) -> BackendDescriptor:
        data = self._tensor(Role.DATA, self._convolution.data)
        weight = self._tensor(Role.WEIGHT, self._convolution.weight)
        if self._convolution.is_transposed:
            return self._backward(data, weight, result)
        operation = self._new(DescriptorKind.CONVOLUTION_FORWARD)
        operation.descriptors(Attribute.FORWARD_CONVOLUTION, self._window())
        operation.descriptors(Attribute.FORWARD_DATA, data)
        operation.descriptors(Attribute.FORWARD_WEIGHT, weight)
        operation.descriptors(Attribute.FORWARD_RESULT, result)
        operation.set(Attribute.FORWARD_ALPHA, Type.FLOAT, 1)
        return operation.set(Attribute.FORWARD_BETA, Type.FLOAT, 0).finalize()

    def _backward(
        self, data: BackendDescriptor, weight: BackendDescriptor, result: BackendDescriptor
    ) -> BackendDescriptor:
        """Returns the gradient with respect to the data, whose operand is a gradient, too."""
        operation = self._new(DescriptorKind.CONVOLUTION_BACKWARD_DATA)
        operation.descriptors(Attribute.BACKWARD_CONVOLUTION, self._window())
        operation.descriptors(Attribute.BACKWARD_DATA, data)
        operation.descriptors(Attribute.BACKWARD_WEIGHT, weight)
        operation.descriptors(Attribute.BACKWARD_RESULT, result)
        operation.set(Attribute.BACKWARD_ALPHA, Type.FLOAT, 1)
        return operation.set(Attribute.BACKWARD_BETA, Type.FLOAT, 0).finalize()

    def _window(self) -> BackendDescriptor:
        """Returns strides, padding and dilations; sums are of `f32`."""
        convolution = self._convolution
        window = self._new(DescriptorKind.CONVOLUTION)
        window.set(Attribute.CONVOLUTION_COMPUTED_IN, Type.DATA_TYPE, DataType.F32)
        window.set(Attribute.CONVOLUTION_MODE, Type.CONVOLUTION_MODE, CROSS_CORRELATION)
        window.integers(Attribute.CONVOLUTION_SPATIAL_RANK, len(convolution.strides))
        window.integers(Attribute.CONVOLUTION_PADDING_BEFORE, *convolution.before)
        window.integers(Attribute.CONVOLUTION_PADDING_AFTER, *convolution.after)
        window.integers(Attribute.CONVOLUTION_DILATIONS, *convolution.dilations)
        window.integers(Attribute.CONVOLUTION_STRIDES, *convolution.strides)
        return window.finalize()

    def _pointwise(
        self,
        mode: int,
        x: BackendDescriptor,
        operand: BackendDescriptor | None,
        y: BackendDescriptor,
    ) -> BackendDescriptor:
        function = self._new(DescriptorKind.POINTWISE)
        function.set(Attribute.POINTWISE_MODE, Type.POINTWISE_MODE, mode)
        function.set(Attribute.POINTWISE_COMPUTED_IN, Type.DATA_TYPE, DataType.F32)
        operation = self._new(DescriptorKind.POINTWISE_OPERATION)
        operation.descriptors(Attribute.POINTWISE_DESCRIPTOR, function.finalize())
        operation.descriptors(Attribute.POINTWISE_X, x)
        if operand is not None:
            operation.descriptors(Attribute.POINTWISE_B, operand)
        return operation.descriptors(Attribute.POINTWISE_Y, y).finalize()

    def _virtual(self) -> BackendDescriptor:
        """Returns a value between two operations, of `f32`."""
        number, sizes = next(self._numbers), self._convolution.result
        return self._described(number, sizes, DataType.F32, is_virtual=True)

    def _tensor(self, role: Role, sizes: tuple[int, ...]) -> BackendDescriptor:
        return self._described(role, sizes, self._convolution.type_, is_virtual=False)

    def _described(
        self, number: int, sizes: tuple[int, ...], type_: DataType, *, is_virtual: bool
    ) -> BackendDescriptor:
        """Returns a dense, row-major tensor."""
        strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
        tensor = self._new(DescriptorKind.TENSOR)
        tensor.set(Attribute.TENSOR_TYPE, Type.DATA_TYPE, type_)
        tensor.integers(Attribute.TENSOR_SIZES, *sizes)
        tensor.integers(Attribute.TENSOR_STRIDES, *strides)
        tensor.integers(Attribute.TENSOR_NUMBER, number)
        tensor.integers(Attribute.TENSOR_ALIGNMENT, ALIGNMENT)
        return tensor.set(Attribute.TENSOR_IS_VIRTUAL, Type.BOOLEAN, is_virtual).finalize()
