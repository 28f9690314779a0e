"""1x1 convolutions of one row of pixels in NHWC: each pixel is a vector times a matrix."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from byoc_mlir.dims import Size
from byoc_mlir.kernels.convolution import Convolution, ConvolutionKernel, KernelCode, panel_of
from byoc_mlir.kernels.parameters import words
from byoc_mlir.kernels.pixel_row.code import Parameters, define_pixel_row
from byoc_mlir.kernels.vectors import VectorUnit

NAME = "pixel_row"
"""Name of the algorithm in IR and reports."""


@dataclass(frozen=True)
class PixelRow(ConvolutionKernel):
    """1x1 convolution of one row of pixels."""

    convolution: Convolution
    unit: VectorUnit

    @property
    def name(self) -> str:
        return NAME

    def milliseconds(self, direct: float, threads: int) -> float:
        return 2 * direct  # each weight is loaded for one pixel alone

    @property
    def _blocks(self) -> int:
        return self.convolution.outputs // self.unit.lanes

    @property
    def weights_shape(self) -> tuple[int, ...]:
        return (self._blocks, self.convolution.inputs, self.unit.lanes)

    @property
    def packing(self) -> Hashable:
        return (NAME, self.unit.lanes)

    def pack(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        lanes = self.unit.lanes
        panels = [panel_of(weights, number, lanes) for number in range(self._blocks)]
        return np.stack(panels).reshape(self.weights_shape)

    def code(self, threads: int) -> KernelCode:
        define = partial(
            define_pixel_row, lanes=self.unit.lanes, epilogue=self.convolution.epilogue
        )
        return KernelCode(define, words(self._parameters()))

    def _parameters(self) -> Parameters[Size]:
        batch, _, rows, width = self.convolution.result.shape
        return Parameters(
            pixels=batch * rows * width, inputs=self.convolution.inputs, blocks=self._blocks
        )


def pixel_row_kernel(convolution: Convolution, unit: VectorUnit) -> PixelRow | None:
    """Returns the kernel of a convolution, or `None` if it is not written for it."""
    images = (convolution.source, convolution.result)
    is_row = all(image.is_channels_last and image.shape[2] == 1 for image in images)
    is_pointwise = (convolution.window, convolution.strides) == ((1, 1), (1, 1))
    if not (is_row and is_pointwise) or convolution.is_padded:
        return None
    return PixelRow(convolution, unit)
