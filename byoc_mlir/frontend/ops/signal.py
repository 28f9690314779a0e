"""Fourier transforms as matmuls with constant matrices, and frames of signals."""

from __future__ import annotations

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import index, nn
from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dims import floordiv
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, Value
from byoc_mlir.tensors import Array

_LARGEST_MATRIX = 1 << 27
"""Maximum number of elements of a transform's matrix; longer transforms are refused."""


def _matrix(count: int, parts: int, length: int, *, inverse: bool, onesided: bool) -> Array:
    """Returns the matrix of a Fourier transform along an axis of `count` numbers.

    The columns are the numbers' parts: one if they are real, two if they are complex. The rows are
    the results' parts. With `inverse` and `onesided`, the input is one half of the frequencies, and
    the results are real.
    """
    used = min(count, length // 2 + 1 if inverse and onesided else length)
    outputs = length // 2 + 1 if onesided and not inverse else length
    if outputs * max(1, count) * parts * 2 > _LARGEST_MATRIX:
        raise NodeRefused(f"a Fourier transform of length {length} is too long for the host")
    turns = np.outer(np.arange(outputs), np.arange(used)) % length / length
    angles = 2 * np.pi * turns * (1 if inverse else -1)
    factors = np.exp(1j * angles) / (length if inverse else 1)
    if inverse and onesided:
        both = np.full(used, 2.0)
        both[:1] = 1.0
        if length % 2 == 0 and used == length // 2 + 1:
            both[-1] = 1.0
        factors = factors * both
    real, imaginary = factors.real, factors.imag
    rows = [(real, -imaginary), (imaginary, real)][: 1 if inverse and onesided else 2]
    matrix = np.zeros((outputs, len(rows), count, parts))
    for number, columns in enumerate(rows):
        for part in range(parts):
            matrix[:, number, :used, part] = columns[part]
    return matrix.reshape(outputs * len(rows), count * parts)


def _dft(
    context: NodeContext, data: Value, length: int, axis: int, *, inverse: bool, onesided: bool
) -> Value:
    parts, count = data.number(-1), data.number(axis)
    matrix = _matrix(count, parts, length, inverse=inverse, onesided=onesided)
    order = [at for at in range(data.rank) if at != axis]
    order.insert(data.rank - 2, axis)
    moved = arith.transpose(context, data, order)
    leading = moved.sizes[:-2]
    rows = arith.reshape(context, moved, [*leading, count * parts])
    product = context.emit(nn.DenseOp, rows, context.constant(matrix, data.dtype))
    parts = 1 if inverse and onesided else 2
    result = arith.reshape(context, product, [*leading, matrix.shape[0] // parts, parts])
    return arith.transpose(context, result, [order.index(at) for at in range(data.rank)])


_AXIS_AS_INPUT = 20
"""First opset in which the axis is an input; in earlier ones, its default is another."""


@onnx_op("DFT")
def dft(
    context: NodeContext,
    data: Value,
    length: Value | None = None,
    axis: Value | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    default = 1 if context.opset < _AXIS_AS_INPUT else -2
    given = default if axis is None else int(context.number(axis, "axis"))
    along = normalize_axis(given, data.rank)
    if data.sizes[-1] not in (1, 2):
        raise NodeRefused(
            f"the last dimension of {list(data.sizes)} is neither 1, for real numbers, nor 2, for"
            " complex ones"
        )
    if length is not None:
        size = context.count(length, "dft_length", least=1)
    elif inverse and onesided:
        size = 2 * (data.number(along) - 1)
    else:
        size = data.number(along)
    return _dft(context, data, size, along, inverse=bool(inverse), onesided=bool(onesided))


@onnx_op("STFT")
def stft(
    context: NodeContext,
    signal: Value,
    frame_step: Value,
    window: Value | None = None,
    frame_length: Value | None = None,
    *,
    onesided: int = 1,
) -> Value:
    if signal.rank not in (2, 3) or signal.sizes[2:] not in ((), (1,), (2,)):
        raise VerifyException(
            f"the signal is of shape {list(signal.sizes)}, accepted are [batch, samples], with 1"
            " appended, or with 2 for complex numbers"
        )
    step = context.count(frame_step, "frame_step", least=1)
    if frame_length is not None:
        size = context.count(frame_length, "frame_length", least=1)
    else:
        size = signal.number(1) if window is None else window.number(0)
    frames = 1 + floordiv(signal.sizes[1] - size, step)
    begins = arith.multiply(context, arith.positions(context, frames, 0, 2), step)
    places = arith.add(context, begins, arith.positions(context, size, 1, 2))
    data = signal if signal.rank == 3 else arith.reshape(context, signal, [*signal.sizes, 1])
    framed = context.emit(index.TakeOp, data, places, axis=1)
    if window is not None:
        framed = arith.multiply(context, framed, arith.reshape(context, window, [size, 1]))
    return _dft(context, framed, size, 2, inverse=False, onesided=bool(onesided))


@onnx_op("MelWeightMatrix")
def mel_weight_matrix(
    context: NodeContext,
    num_mel_bins: Value,
    dft_length: Value,
    sample_rate: Value,
    lower_edge_hertz: Value,
    upper_edge_hertz: Value,
    *,
    output_datatype: int = 1,
) -> Value:
    for value in (num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz):
        context.known(value, "every input")
    raise NodeRefused("the matrix could not be computed at import")
