"""Convolutions; see `evaluate`."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.dialects.relay import window as relay
from byoc_mlir.dialects.relay.base import RelayOp, shape_of
from byoc_mlir.dialects.relay.evaluate.elementwise import Evaluator, element_dtype
from byoc_mlir.numpy_ops import convolution
from byoc_mlir.numpy_ops.precision import widened
from byoc_mlir.numpy_ops.window import Axis
from byoc_mlir.tensors import Array


def window_axes(op: relay.WindowOp, data: Array, kernel: Sequence[int]) -> tuple[Axis, ...]:
    """Returns where a window goes along each spatial dimension."""
    return _axes(op, data.shape[2:], kernel, shape_of(op.output)[2:])


def _axes(
    op: relay.WindowOp, sizes: Sequence[int], kernel: Sequence[int], counts: Sequence[int]
) -> tuple[Axis, ...]:
    strides, padding, dilation = op.checked_window()
    ends = padding[op.SPATIAL_RANK :]
    numbers = zip(sizes, kernel, strides, dilation, padding, ends, counts, strict=False)
    return tuple(Axis(*each) for each in numbers)


def correlate(op: relay.CorrelationOp, data: Array, weight: Array) -> Array:
    """Returns a convolution of arrays of one type."""
    axes, groups = window_axes(op, data, weight.shape[2:]), op.groups.value.data
    found = convolution.correlate(widened(data), widened(weight), axes, groups)
    return found.astype(element_dtype(op.output))


def correlate_transposed(op: relay.TransposedCorrelationOp, data: Array, weight: Array) -> Array:
    """Returns a transposed convolution of arrays of one type."""
    sizes = shape_of(op.output)[2:]
    axes, groups = _axes(op, sizes, weight.shape[2:], data.shape[2:]), op.groups.value.data
    found = convolution.correlate_transposed(widened(data), widened(weight), axes, groups)
    return found.astype(element_dtype(op.output))


WINDOW: dict[type[RelayOp], Evaluator] = {
    **dict.fromkeys(relay.CONV.values(), correlate),
    **dict.fromkeys(relay.CONV_TRANSPOSE.values(), correlate_transposed),
}
