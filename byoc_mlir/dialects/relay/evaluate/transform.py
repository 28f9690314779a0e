"""Evaluation of ops that move elements, and of sizes; see `evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from byoc_mlir.dialects.relay import bits, size
from byoc_mlir.dialects.relay import transform as relay
from byoc_mlir.dialects.relay.base import RelayOp, ints, shape_of
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.evaluate.elementwise import Evaluator
from byoc_mlir.numpy_ops.movement import pad
from byoc_mlir.tensors import Array


def _reshaped(op: relay.ReshapeOp | relay.SqueezeOp | relay.ExpandDimsOp, data: Array) -> Array:
    return data.reshape(shape_of(op.output))


def _transpose(op: relay.TransposeOp, data: Array) -> Array:
    return data.transpose(ints(op.axes))


def _broadcast_to(op: relay.BroadcastToOp, data: Array) -> Array:
    return np.broadcast_to(data, ints(op.shape))


def _concatenate(op: relay.ConcatenateOp, *data: Array) -> Array:
    return np.concatenate(data, op.positive_axis)


def _split(op: relay.SplitOp, data: Array) -> Sequence[Array]:
    cuts = list(accumulate(ints(op.sections)))[:-1]
    return np.split(data, cuts, op.positive_axis)


def _strided_slice(op: relay.StridedSliceOp, data: Array) -> Array:
    return data[
        tuple(
            slice(begin, None if end < 0 else end, stride)
            for begin, end, stride in zip(
                ints(op.begin), ints(op.end), ints(op.strides), strict=True
            )
        )
    ]


def _pad(op: relay.PadOp, data: Array) -> Array:
    widths = ints(op.pad_width)
    pairs = list(zip(widths[0::2], widths[1::2], strict=True))
    fill = data.dtype.type(op.pad_value.value.data) if op.pad_mode.data == "constant" else 0
    return pad(data, pairs, op.pad_mode.data, fill)


def _reinterpret(op: bits.ReinterpretOp, data: Array) -> Array:
    return np.ascontiguousarray(data).reshape(data.shape).view(numpy_dtype(op.dtype))


def _sizes(op: size.SizesOp) -> Array:
    return np.array(ints(op.values), numpy_dtype(op.dtype)).reshape(ints(op.newshape))


def _arange(op: size.ArangeOp) -> Array:
    return np.arange(*ints(op.span)).astype(numpy_dtype(op.dtype))


FUNCTIONS: dict[type[RelayOp], Evaluator] = {
    bits.ReinterpretOp: _reinterpret,
    size.ArangeOp: _arange,
    size.SizesOp: _sizes,
    relay.BroadcastToOp: _broadcast_to,
    relay.ConcatenateOp: _concatenate,
    relay.ExpandDimsOp: _reshaped,
    relay.PadOp: _pad,
    relay.ReshapeOp: _reshaped,
    relay.SplitOp: _split,
    relay.SqueezeOp: _reshaped,
    relay.StridedSliceOp: _strided_slice,
    relay.TransposeOp: _transpose,
}
