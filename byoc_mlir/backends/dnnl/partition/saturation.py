"""Int8 GEMMs that oneDNN does not compute exactly on this machine.

Without VNNI, oneDNN adds two products in 16 bits, which saturates. For `i8` sources, it halves the
weights.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i8

from byoc_mlir.backends.dnnl.conversion.quantized_chains import (
    QuantizedConvolution,
    QuantizedProduct,
)
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.onednn.engine import engine
from byoc_mlir.onednn.library import unavailable_reason

_HARMLESS = 64
"""Maximum magnitude of weights for which two products with a byte, 2 * 64 * 255, fit in 16 bits."""

_RANKS, _PAIR = (3, 4), 2
"""Ranks of images that the built-in kernel supports; required divisor of the channels of a
group.
"""


def saturates(found: QuantizedConvolution | QuantizedProduct) -> str | None:
    """Returns why oneDNN's int8 convolution or matmul may be inexact on this machine, or `None`."""
    if unavailable_reason() is not None or engine().has_vnni:
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
    """True if a built-in kernel computes the convolution exactly, on any machine."""
    groups, channels = found.op.groups.value.data, found.weights.shape[1]
    return len(shape_of(found.data)) in _RANKS and (groups == 1 or channels % _PAIR == 0)


def _is_depthwise(found: QuantizedConvolution) -> bool:
    """True if the convolution is depthwise; oneDNN accumulates such a convolution in 32 bits."""
    return found.op.groups.value.data == shape_of(found.data)[1] == len(found.weights)
