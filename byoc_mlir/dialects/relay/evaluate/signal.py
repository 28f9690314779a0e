"""Evaluation of Fourier transforms, in f64; see `evaluate`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from byoc_mlir.dialects.relay import signal as relay
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.dialects.relay.evaluate.elementwise import Evaluator
from byoc_mlir.tensors import Array


def _fft(op: relay.FftOp, data: Array) -> Array:
    wide = data.astype(np.float64)
    numbers = wide[..., 0] if data.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]
    if op.is_real and op.is_inverse:
        return np.fft.irfft(numbers)[..., None].astype(data.dtype)
    transform = np.fft.rfft if op.is_real else np.fft.ifft if op.is_inverse else np.fft.fft
    found = transform(numbers)
    return np.stack([found.real, found.imag], -1).astype(data.dtype)


FUNCTIONS: Mapping[type[RelayOp], Evaluator] = {relay.FftOp: _fft}
