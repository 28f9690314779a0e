"""Depthwise convolutions in NHWC, without a padded copy of the image.

While a micro-kernel iterates over the window, it keeps the results of a few pixels and one vector
of channels in registers. Pixels that several windows share are loaded once. Window rows outside of
the image are skipped; pixels beyond its sides are read from zeros after the weights.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Size
from byoc_mlir.kernels.convolution import Convolution, ConvolutionKernel, Image, KernelCode, Windows
from byoc_mlir.kernels.costs import ConvolutionCalibration, RoundedCalibration, calibration
from byoc_mlir.kernels.depthwise.channels import CHANNELS
from byoc_mlir.kernels.depthwise.code import define_depthwise
from byoc_mlir.kernels.depthwise.micro_kernel import DepthwiseParameters, DepthwiseVariant
from byoc_mlir.kernels.parameters import words
from byoc_mlir.kernels.strips import LevelStrips, RestStrips, Strips
from byoc_mlir.kernels.vectors import VectorUnit

NAME = "depthwise"
"""Name of the algorithm in IR and reports."""

_PIXELS = 7
"""Maximum pixels of a strip: enough sums to hide latency, and a divisor of usual widths."""

_WIDEST = 9
"""Maximum width of a window, as its columns are unrolled."""


@dataclass(frozen=True)
class Depthwise(ConvolutionKernel):
    """Depthwise convolution."""

    convolution: Convolution
    unit: VectorUnit

    @property
    def name(self) -> str:
        return NAME

    def milliseconds(self, direct: float, threads: int) -> float:
        if self.convolution.element != f32:
            return (
                direct
                * calibration(ConvolutionCalibration).products
                / calibration(RoundedCalibration).depthwise
            )
        pixels = 4 * hint(sum(math.prod(one.shape) for one in self._images))
        return direct + pixels / calibration(ConvolutionCalibration).transformed_bytes / threads

    @property
    def _images(self) -> tuple[Image, Image]:
        return self.convolution.source, self.convolution.result

    @property
    def _parts(self) -> int:
        """Returns the number of vectors in a block of channels."""
        return CHANNELS[self.convolution.element].parts

    @property
    def _block(self) -> int:
        return self._parts * self.unit.lanes

    @property
    def _blocks(self) -> int:
        return -(-self.convolution.outputs // self._block)

    @property
    def _window(self) -> int:
        """Returns the number of weights for one block of channels."""
        return math.prod(self.convolution.window) * self._block

    @property
    def _weights(self) -> int:
        return self._window * self._blocks

    @property
    def weights_shape(self) -> tuple[int, ...]:
        """Returns the shape of the packed weights; the zeros that follow them are not included."""
        return (self._weights + self.convolution.outputs,)

    @property
    def packing(self) -> Hashable:
        return (NAME, self.unit.lanes, self._parts)

    def pack(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        packed = np.zeros(self.weights_shape, np.float32)
        lanes, outputs = self.unit.lanes, self.convolution.outputs
        begins = (min(one, outputs - self._block) for one in range(0, outputs, self._block))
        blocks = np.stack([weights[begin : begin + self._block] for begin in begins])
        parts = blocks.reshape(self._blocks, lanes, self._parts, -1)
        packed[: self._weights] = parts.transpose(0, 3, 2, 1).ravel()
        return packed

    @property
    def _strips(self) -> Strips:
        """Returns the strips for rows; the longest ones still fit in registers, with their source
        pixels.

        Rows of symbolic width have the longest strips, so that convolutions share their code.
        """
        most = max(one for one in range(1, _PIXELS + 1) if one == 1 or self._fits(one))
        width = self.convolution.result.shape[3]
        return LevelStrips.of(width, most) if isinstance(width, int) else RestStrips(most)

    def _fits(self, pixels: int) -> bool:
        sums = self._parts * pixels
        return sums + len(self._variant(pixels).places) <= self.unit.registers

    def _variant(self, pixels: int) -> DepthwiseVariant:
        it, epilogue = self.convolution, self.convolution.epilogue
        return DepthwiseVariant(
            self.unit.lanes,
            pixels,
            it.window[1],
            it.strides[1],
            it.dilation[1],
            epilogue.residual,
            epilogue.lower,
            epilogue.upper,
            it.element,
            prefetches=it.source.is_symbolic,
        )

    def code(self, threads: int) -> KernelCode:
        strips, bias = self._strips, self.convolution.epilogue.bias
        variant = self._variant(strips.longest)
        define = partial(define_depthwise, variant=variant, strips=strips, bias=bias)
        return KernelCode(define, words(self._parameters()))

    def _parameters(self) -> DepthwiseParameters[Size]:
        it, lanes = self.convolution, self.unit.lanes
        batch, _, rows, width = it.result.shape
        source, result = (image.strides(lanes) for image in self._images)
        return DepthwiseParameters(
            lines=batch * rows,
            rows=rows,
            row_pixels=width,
            blocks=self._blocks,
            window=self._window,
            window_height=it.window[0],
            window_line=it.dilation[0] * source.line,
            weights=self._weights,
            windows=Windows.of(it),
            source_image=source.image,
            source_line=source.line,
            source_pixel=it.inputs,
            result_image=result.image,
            result_line=result.line,
            result_pixel=it.outputs,
        )


def depthwise_kernel(convolution: Convolution, unit: VectorUnit) -> Depthwise | None:
    """Returns the convolution with the longest vectors that fit it, or `None` if not supported."""
    images = (convolution.source, convolution.result)
    is_one_each = convolution.groups == convolution.inputs == convolution.outputs
    is_last = all(image.is_channels_last for image in images)
    if not (is_one_each and is_last) or convolution.window[1] > _WIDEST:
        return None
    fitting = (one for one in unit.lengths() if _has_blocks(convolution, one))
    return next((Depthwise(convolution, one) for one in fitting), None)


def _has_blocks(convolution: Convolution, unit: VectorUnit) -> bool:
    """True if the channels form whole blocks.

    With `bf16` the last block may overlap the one before it, and write the same values again. With
    a residual, blocks must not overlap: the residual may share the result's memory, and would be
    added twice.
    """
    block, channels = CHANNELS[convolution.element].parts * unit.lanes, convolution.outputs
    if convolution.element == f32 or convolution.epilogue.residual:
        return channels % block == 0
    return channels >= block
