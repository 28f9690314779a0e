"""Graphs of cuDNN's operations for fused convolutions."""

from __future__ import annotations

import math
from itertools import count

from byoc_mlir.backends.cudnn.constants import (
    ADD,
    CROSS_CORRELATION,
    RELU,
    Attribute,
    DataType,
    DescriptorKind,
    Type,
)
from byoc_mlir.backends.cudnn.convolutions import FusedConvolution, Role
from byoc_mlir.backends.cudnn.descriptors import BackendDescriptor, OwnedDescriptors

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
