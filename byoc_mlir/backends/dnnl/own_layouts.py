"""How our own convolutions lay out tensors: images by vectors of channels, weights in panels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl import layouts
from byoc_mlir.dialects.relay.base import shape_of

LANES = 8
"""The channels that a vector has."""

PANEL = 2 * LANES
"""The output channels that a kernel handles at once; the weights are stored in such columns."""

CHANNELS_LAST = layouts.channels_last(4)
CHANNEL_VECTORS = layouts.blocked_channels(4, LANES)


@dataclass(frozen=True)
class Strides:
    """Elements from image to image, vector to vector, line to line and pixel to pixel."""

    image: int
    vector: int
    line: int
    pixel: int


def strides_of(value: SSAValue, layout: str) -> Strides:
    """Those of a tensor `[N, C, H, W]` in one of the two layouts."""
    _, channels, height, width = shape_of(value)
    pixel = LANES if layout == CHANNEL_VECTORS else channels
    vector = LANES * height * width if layout == CHANNEL_VECTORS else LANES
    return Strides(channels * height * width, vector, width * pixel, pixel)


def panel_of(weights: NDArray[np.float32], number: int) -> NDArray[np.float32]:
    """Some outputs of `[O, I, H, W]` as `[H, W, I, PANEL]`, with zeros where there are no more."""
    some = weights[number * PANEL : (number + 1) * PANEL]
    panel = np.zeros((*some.shape[2:], some.shape[1], PANEL), np.float32)
    panel[..., : len(some)] = some.transpose(2, 3, 1, 0)
    return panel
