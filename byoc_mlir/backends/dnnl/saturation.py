"""Where the library's sums of bytes are not exact on this machine.

Without VNNI it adds products of two bytes in 16 bits, which saturate, and halves the weights of
sources of `i8`.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i8

from byoc_mlir.backends.dnnl.api import api
from byoc_mlir.backends.dnnl.conversion.quantized_chains import (
    QuantizedConvolution,
    QuantizedProduct,
)
from byoc_mlir.backends.onednn import unavailable_reason
from byoc_mlir.dialects.relay.base import shape_of, tensor_type

_HARMLESS = 64
"""Weights up to here: two products with a byte, 2 * 64 * 255, fit 16 bits."""

_RANKS = (3, 4)
"""Of the images that our kernel is written for."""


def saturates(found: QuantizedConvolution | QuantizedProduct) -> str | None:
    """Why the library's sums might be wrong on this machine."""
    if unavailable_reason() is not None or api().has_vnni:
        return None
    if tensor_type(found.data).element_type == i8:
        return "a source of i8 (without VNNI oneDNN halves the weights)"
    if isinstance(found, QuantizedConvolution) and _is_depthwise(found):
        return None
    if np.abs(found.weights.astype(np.int16)).max() > _HARMLESS:
        return (
            f"weights beyond {_HARMLESS} (without VNNI oneDNN's sums of two products saturate in 16"
            " bits)"
        )
    return None


def has_own_kernel(found: QuantizedConvolution) -> bool:
    """Whether code of our own computes such a convolution, on any machine."""
    return found.op.groups.value.data == 1 and len(shape_of(found.data)) in _RANKS


def _is_depthwise(found: QuantizedConvolution) -> bool:
    """Whether each channel is on its own: the library multiplies those in 32 bits."""
    return found.op.groups.value.data == shape_of(found.data)[1] == len(found.weights)
