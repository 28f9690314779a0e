"""Fourier transforms of any length, and frames of signals."""

from __future__ import annotations

from functools import partial
from itertools import count

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import index, transform
from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dialects.relay.signal import FftOp, factors_of
from byoc_mlir.dims import floordiv
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, Value
from byoc_mlir.tensors import Array

_CONVOLVED = (2, 3, 5)
"""Prime factors of the lengths of convolutions, those that are transformed fastest."""
_VECTOR = 16
"""Factor of these lengths, so that inner loops fill vectors."""


def _dft(
    context: NodeContext, data: Value, length: int, axis: int, *, inverse: bool, onesided: bool
) -> Value:
    """Transforms an axis, cut or padded with zeros to `length`.

    With `inverse` and `onesided`, the input is one half of the frequencies, and the results are
    real.
    """
    order = [at for at in range(data.rank) if at != axis]
    order.insert(data.rank - 2, axis)
    wide = np.dtype(np.float32) if data.dtype.itemsize == 2 else data.dtype
    rows = cast(context, arith.transpose(context, data, order), wide)
    if length == 0:
        result = _resized(
            context, _resized(context, rows, -2, 0), -1, 1 if onesided and inverse else 2
        )
    elif inverse and onesided:
        result = _real_from_half(context, _resized(context, rows, -2, length // 2 + 1), length)
    else:
        rows = _resized(context, rows, -2, length)
        result = _frequencies(context, rows, inverse=inverse, onesided=onesided)
    back = arith.transpose(context, result, [order.index(at) for at in range(data.rank)])
    return cast(context, back, data.dtype)


def _resized(context: NodeContext, data: Value, axis: int, size: int) -> Value:
    """Cuts an axis to `size` elements, or appends zeros."""
    widths = [0] * (2 * data.rank)
    widths[2 * (axis % data.rank) + 1] = size - data.number(axis)
    return context.emit(transform.PadOp, data, pad_width=widths) if any(widths) else data


def _frequencies(context: NodeContext, data: Value, *, inverse: bool, onesided: bool) -> Value:
    """Transforms the next to last axis, all of it, or with `onesided` to its first half."""
    length, is_real = data.number(-2), data.number(-1) == 1
    half = length // 2 + 1
    if is_real and not inverse and _has_fast_half(length):
        result = context.emit(FftOp, data, real=True)
        return result if onesided else _both_halves(context, result, length)
    result = _complex(context, _resized(context, data, -1, 2), inverse=inverse)
    return arith.section(context, result, data.rank - 2, 0, half) if onesided else result


def _real_from_half(context: NodeContext, half: Value, length: int) -> Value:
    """Transforms one half of the frequencies of a real signal back."""
    half = _resized(context, half, -1, 2)
    if _has_fast_half(length):
        return context.emit(FftOp, half, real=True, inverse=True)
    result = _complex(context, _both_halves(context, half, length), inverse=True)
    return _resized(context, result, -1, 1)


def _has_fast_half(length: int) -> bool:
    """True if `relay.fft` transforms real signals of this length."""
    return length % 2 == 0 and _is_fast(length // 2)


def _is_fast(length: int) -> bool:
    """True if `relay.fft` transforms complex numbers of this length."""
    return length == 1 or bool(factors_of(length))


def _both_halves(context: NodeContext, half: Value, length: int) -> Value:
    """Appends the frequencies that are conjugates of those in the first half."""
    mirrored = range((length - 1) // 2, 0, -1)
    if not mirrored:
        return half
    others = arith.take(context, half, mirrored, half.rank - 2)
    conjugate = context.constant([1, -1], half.dtype)
    parts = [half, arith.multiply(context, others, conjugate)]
    return arith.concatenate(context, parts, half.rank - 2)


def _complex(context: NodeContext, data: Value, *, inverse: bool) -> Value:
    """Transforms complex numbers along the next to last axis.

    A length with a large prime factor is transformed as a cyclic convolution with a chirp
    (Bluestein's algorithm).
    """
    length = data.number(-2)
    if _is_fast(length):
        return context.emit(FftOp, data, inverse=inverse)
    least = -(-(2 * length - 1) // _VECTOR) * _VECTOR
    padded = next(n for n in count(least, _VECTOR) if factors_of(n, _CONVOLVED))
    squares = np.arange(length) ** 2 % (2 * length)
    chirp = np.exp((1j if inverse else -1j) * np.pi * squares / length)
    opposite = np.zeros(padded, np.complex128)
    opposite[:length] = chirp.conj()
    opposite[padded - length + 1 :] = chirp.conj()[:0:-1]
    turned = _resized(context, _times(context, data, chirp), -2, padded)
    spectrum = context.emit(FftOp, turned)
    convolved = _times(context, spectrum, np.fft.fft(opposite))
    result = _resized(context, context.emit(FftOp, convolved, inverse=True), -2, length)
    return _times(context, result, chirp / length if inverse else chirp)


def _times(context: NodeContext, data: Value, factors: Array) -> Value:
    """Multiplies complex numbers along the next to last axis by constants."""
    axis = data.rank - 1
    real, imaginary = (arith.section(context, data, axis, part, part + 1) for part in (0, 1))
    columns = factors.reshape(-1, 1)
    by_real = context.constant(np.real(columns), data.dtype)
    by_imaginary = context.constant(np.imag(columns), data.dtype)
    times = partial(arith.multiply, context)
    parts = [
        arith.subtract(context, times(real, by_real), times(imaginary, by_imaginary)),
        arith.add(context, times(real, by_imaginary), times(imaginary, by_real)),
    ]
    return arith.concatenate(context, parts, axis)


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
