"""Integer matmuls and convolutions that the kernels compute, and the ops that the kernels fuse."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.relay import RelayOp, elementwise, nn, qnn
from byoc_mlir.dialects.relay.base import rank_of, shape_of, sizes_of, tensor_type
from byoc_mlir.dialects.relay.constant import derived_array, known_array
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.qnn_window import QuantizedConvOp
from byoc_mlir.dims import Size
from byoc_mlir.kernels.convolution import Pair, pair_of, planes
from byoc_mlir.kernels.integer_gemm.epilogue import IntegerEpilogue
from byoc_mlir.tensors import Array


@dataclass(frozen=True)
class Padding:
    """Pixels of padding before and after the image."""

    begins: Pair = (0, 0)
    ends: Pair = (0, 0)

    @property
    def is_any(self) -> bool:
        """True if there is any padding."""
        return any((*self.begins, *self.ends))


_NO_PADDING = Padding()
_RANGE = np.iinfo(np.int8)


@dataclass(frozen=True)
class IntegerMatmul:
    """Matmul or convolution with constant weights, described as a convolution."""

    op: RelayOp
    data: SSAValue
    zero_point: SSAValue
    """Zero point of the data, of rank 0."""
    weights: Array
    """Weights without zero point, `[height, width, channels, outputs]`: a view of `constant`."""
    constant: Array
    """The weights as they are in memory, of `i8` or `i16`."""
    image: tuple[Size, Size, Size]
    """Numbers of images, rows and pixels; a matrix is one row."""
    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Padding = _NO_PADDING
    channel_axis: int = -1
    """Axis of the channels: the last one of a matrix, the one before the pixels of an image."""

    @property
    def channels(self) -> int:
        """Returns the number of the data's channels."""
        return self.weights.shape[2]

    @property
    def outputs(self) -> int:
        """Returns the number of the result's channels."""
        return self.weights.shape[3]

    @property
    def window(self) -> Pair:
        """Returns the height and width of the window."""
        return self.weights.shape[0], self.weights.shape[1]


def product_of(op: Operation) -> IntegerMatmul | None:
    """Returns the matmul or convolution that an op computes, if the weights are constant; None for
    other ops.
    """
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
    """Returns constant weights minus their zero point, as `i8` if all of them fit.

    Args:
        inner: dimensions to append to the shape of a vector of zero points, for broadcasting.
    """
    weights, zeros = known_array(value), known_array(zero_point)
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
    fits = _RANGE.min <= differences.min() and differences.max() <= _RANGE.max
    found = weights.astype(np.int8 if fits else np.int16)
    found -= zeros.astype(found.dtype)  # what does not fit on the way does in the end
    return found


def is_signed(value: SSAValue) -> bool:
    """True if the elements of an int8 tensor are signed."""
    return tensor_type(value).element_type == qnn.BYTES[0]


_ONE = np.ones((), np.float32)
"""Scale of sums that are converted without scaling."""

_SUMS = IntegerEpilogue()
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


@dataclass(frozen=True)
class IntegerGemmChain:
    """Matmul or convolution and the ops after it, each the only user of the previous op."""

    ops: tuple[RelayOp, ...]
    bias: SSAValue | None = None
    """Vector of `i32`, one element for each channel."""
    scale: SSAValue | Array | None = None
    """One value for all sums, or one for each channel."""
    offset: SSAValue | None = None
    """One value for all sums, or one for each channel."""
    epilogue: IntegerEpilogue = _SUMS

    @property
    def result(self) -> SSAValue:
        """Returns the result of the last op."""
        return self.ops[-1].results[0]


def chain_of(product: IntegerMatmul) -> IntegerGemmChain:
    """Returns the longest chain that begins with a matmul or convolution."""
    chain = IntegerGemmChain((product.op,))
    while (longer := _longer(chain, product)) is not None:
        chain = longer
    return chain


def _longer(chain: IntegerGemmChain, product: IntegerMatmul) -> IntegerGemmChain | None:
    """Returns the chain with the next op appended, or None if the kernel cannot fuse that op."""
    op = chain.result.get_user_of_unique_use()
    if not isinstance(op, RelayOp):
        return None
    added = _with(chain, op, product)
    return None if added is None else replace(added, ops=(*chain.ops, op))


def _with(chain: IntegerGemmChain, op: RelayOp, product: IntegerMatmul) -> IntegerGemmChain | None:
    kind = chain.epilogue.kind
    match op:
        case nn.BiasAddOp() if kind == "sums" and chain.bias is None:
            return replace(chain, bias=op.bias) if _along(op, op.positive_axis, product) else None
        case qnn.DequantizeOp() if kind == "sums":
            return _dequantized(chain, op, product)
        case qnn.RequantizeOp() if kind == "sums":
            return _requantized(chain, op, product)
        case nn.BiasAddOp() if kind == "numbers" and chain.offset is None:
            is_along = _along(op, op.positive_axis, product)
            return _with_offset(chain, op.bias) if is_along else None
        case elementwise.CastOp() if kind == "sums" and op.dtype == f32:
            return replace(chain, scale=_ONE, epilogue=IntegerEpilogue("numbers"))
        case elementwise.MultiplyOp() if chain.scale is _ONE:
            scale = _other(chain, op, product)
            return None if scale is None else replace(chain, scale=scale)
        case elementwise.AddOp() if kind == "numbers" and chain.offset is None:
            offset = _other(chain, op, product)
            return None if offset is None else _with_offset(chain, offset)
        case elementwise.ClipOp() if kind == "bytes":
            return _clipped(chain, op)
        case _:
            return None


def _with_offset(chain: IntegerGemmChain, offset: SSAValue) -> IntegerGemmChain:
    return replace(chain, offset=offset, epilogue=replace(chain.epilogue, offset=True))


def _other(
    chain: IntegerGemmChain, op: elementwise.AddOp | elementwise.MultiplyOp, product: IntegerMatmul
) -> SSAValue | None:
    """Returns the operand of `op` that is not the chain, if it is one value or a vector along the
    channels, else None.
    """
    other = op.lhs if op.rhs is chain.result else op.rhs
    if sizes_of(op.output) != sizes_of(chain.result) or other is chain.result:
        return None
    shape, count, rank = sizes_of(other), math.prod(sizes_of(other)), rank_of(op.output)
    axis = product.channel_axis % rank - rank
    is_along = count == product.outputs and len(shape) >= -axis and shape[axis] == count
    return other if is_along or count == 1 else None


def _along(op: RelayOp, axis: int, product: IntegerMatmul) -> bool:
    """True if `axis` is the channels' axis of the matmul or convolution."""
    return axis == product.channel_axis % rank_of(op.results[0])


def _dequantized(
    chain: IntegerGemmChain, op: qnn.DequantizeOp, product: IntegerMatmul
) -> IntegerGemmChain | None:
    if not _is_zero(op.zero_point) or op.block_size.value.data:
        return None
    if rank_of(op.scale) and not _along(op, op.positive_axis, product):
        return None
    return replace(chain, scale=op.scale, epilogue=IntegerEpilogue("numbers"))


def _requantized(
    chain: IntegerGemmChain, op: qnn.RequantizeOp, product: IntegerMatmul
) -> IntegerGemmChain | None:
    dtype = numpy_dtype(tensor_type(op.output).element_type)
    given, wanted = known_array(op.input_scale), known_array(op.output_scale)
    zero_point = known_array(op.output_zero_point)
    if given is None or wanted is None or zero_point is None or dtype not in _BYTES:
        return None
    if not _is_zero(op.input_zero_point):
        return None
    if given.ndim and not _along(op, op.positive_axis, product):
        return None
    limits = np.iinfo(dtype)
    epilogue = IntegerEpilogue(
        "bytes", zero_point=int(zero_point), lower=int(limits.min), upper=int(limits.max)
    )
    return replace(chain, scale=given / wanted, epilogue=epilogue)


def _clipped(chain: IntegerGemmChain, op: elementwise.ClipOp) -> IntegerGemmChain:
    """Returns the chain with its limits and those of the clip op combined."""
    epilogue = chain.epilogue
    low, high = np.clip(
        [np.ceil(op.a_min.value.data), np.floor(op.a_max.value.data)],
        epilogue.lower,
        epilogue.upper,
    )
    return replace(chain, epilogue=replace(epilogue, lower=int(low), upper=int(high)))


def _is_zero(zero_point: SSAValue) -> bool:
    zeros = known_array(zero_point)
    return zeros is not None and not zeros.any()
