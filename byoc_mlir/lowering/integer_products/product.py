"""Which `relay` ops are integer products that the kernels compute."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.relay import ConstantOp, RelayOp, qnn
from byoc_mlir.dialects.relay.base import rank_of, shape_of, sizes_of, tensor_type
from byoc_mlir.dialects.relay.constant import derived_array
from byoc_mlir.dialects.relay.qnn_window import QuantizedConvOp
from byoc_mlir.dims import Size
from byoc_mlir.kernels.convolution import Pair, pair_of, planes
from byoc_mlir.tensors import Array


@dataclass(frozen=True)
class Padding:
    """Pixels before and after the image."""

    begins: Pair = (0, 0)
    ends: Pair = (0, 0)

    @property
    def is_any(self) -> bool:
        """Whether there are any."""
        return any((*self.begins, *self.ends))


_NO_PADDING = Padding()
_BYTES = np.iinfo(np.int8)


@dataclass(frozen=True)
class IntegerMatmul:
    """A product with constant weights, as one of windows of pixels."""

    op: RelayOp
    data: SSAValue
    zero_point: SSAValue
    """That of the data, of rank 0."""
    weights: Array
    """`[height, width, channels, outputs]`, their zero point taken off: a view of `constant`."""
    constant: Array
    """The same as they are in memory, of `i8` or `i16`."""
    image: tuple[Size, Size, Size]
    """How many images there are, their lines and pixels; a matrix is one line."""
    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Padding = _NO_PADDING
    channel_axis: int = -1
    """That of data and result: the last of a matrix, the one before the pixels of an image."""

    @property
    def channels(self) -> int:
        """Those of the data."""
        return self.weights.shape[2]

    @property
    def outputs(self) -> int:
        """The channels of the result."""
        return self.weights.shape[3]

    @property
    def window(self) -> Pair:
        """Height and width of the window."""
        return self.weights.shape[0], self.weights.shape[1]


def product_of(op: Operation) -> IntegerMatmul | None:
    """The product that an op is; `None` for another op, and for one without constant weights."""
    match op:
        case qnn.DenseOp():
            weights = _weights(op.weight, op.weight_zero_point, (1,))
            if weights is None:
                return None
            return _of_matrix(op, op.data, op.data_zero_point, weights, weights.T)
        case qnn.MatmulOp():
            return _of_matmul(op)
        case QuantizedConvOp() if op.SPATIAL_RANK < 3 and op.groups.value.data == 1:
            return _of_convolution(op)
        case _:
            return None


def _of_matmul(op: qnn.MatmulOp) -> IntegerMatmul | None:
    if (
        op.transpose_a.value.data
        or math.prod(sizes_of(op.b)[:-2]) != 1
        or shape_of(op.a_zero_point)
    ):
        return None
    weights = _weights(op.b, op.b_zero_point, ())
    if weights is None or rank_of(op.b) > rank_of(op.a):
        return None
    matrix = weights.reshape(weights.shape[-2:])
    return _of_matrix(op, op.a, op.a_zero_point, weights, matrix)


def _of_matrix(
    op: RelayOp, data: SSAValue, zero_point: SSAValue, weights: Array, matrix: Array
) -> IntegerMatmul | None:
    *rows, _ = sizes_of(data)
    count = math.prod(rows)
    if count == 0 or not matrix.size:
        return None
    return IntegerMatmul(op, data, zero_point, matrix[None, None], weights, (1, 1, count))


def _of_convolution(op: QuantizedConvOp) -> IntegerMatmul | None:
    weights = _weights(op.weight, op.weight_zero_point, (1,) * (op.SPATIAL_RANK + 1))
    if weights is None or 0 in sizes_of(op.output):
        return None
    strides, padding, dilation = op.checked_window()
    rank = op.SPATIAL_RANK
    batch, _, *sizes = sizes_of(op.data)
    lines, pixels = pair_of(sizes, 1)
    return IntegerMatmul(
        op,
        op.data,
        op.data_zero_point,
        planes(weights).transpose(2, 3, 1, 0),
        weights,
        (batch, lines, pixels),
        pair_of(strides, 1),
        pair_of(dilation, 1),
        Padding(pair_of(padding[:rank], 0), pair_of(padding[rank:], 0)),
        channel_axis=1,
    )


def _weights(value: SSAValue, zero_point: SSAValue, inner: tuple[int, ...]) -> Array | None:
    """Constant weights with their zero point taken off, of `i8` where that holds them all.

    Args:
        inner: what the shape of a vector of zero points ends with, so that it broadcasts.
    """
    weights, zeros = constant_of(value), constant_of(zero_point)
    if weights is None or zeros is None:
        return None
    if not weights.size or (weights.dtype == np.int8 and not zeros.any()):
        return weights
    shape = (*zeros.shape, *inner) if zeros.ndim == 1 else zeros.shape
    shape = (1,) * (weights.ndim - len(shape)) + shape
    how, sources = ("centred", shape), [weights, zeros]
    return derived_array(how, sources, lambda: _centred(weights, zeros.reshape(shape)))


def _centred(weights: Array, zeros: Array) -> Array:
    same = tuple(axis for axis, size in enumerate(zeros.shape) if size == 1)
    differences = np.stack([one(same, keepdims=True) for one in (weights.min, weights.max)])
    differences = differences - zeros.astype(np.int16)
    fits = _BYTES.min <= differences.min() and differences.max() <= _BYTES.max
    found = weights.astype(np.int8 if fits else np.int16)
    found -= zeros.astype(found.dtype)  # what does not fit on the way does in the end
    return found


def constant_of(value: SSAValue) -> Array | None:
    """What a value is, where that is known."""
    return value.owner.array if isinstance(value.owner, ConstantOp) else None


def is_signed(value: SSAValue) -> bool:
    """Whether the elements of a tensor of bytes have a sign."""
    return tensor_type(value).element_type == qnn.BYTES[0]
