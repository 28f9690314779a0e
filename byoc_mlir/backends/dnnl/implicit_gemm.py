"""Convolutions as products of pixels by weights, without a matrix of windows in memory.

A kernel keeps the results of up to 6 pixels by 16 output channels in registers while it goes over
the window and the input channels. Channels are last or in blocks of 8; pixels outside of the image
are read from zeros behind the weights. The code is in `codegen/implicit_gemm_*.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byoc_mlir.backends.dnnl.descriptions import LayoutOf
from byoc_mlir.backends.dnnl.dialect import ConvolutionOp
from byoc_mlir.backends.dnnl.epilogue import Epilogue, Limits, epilogue
from byoc_mlir.backends.dnnl.own_layouts import (
    CHANNEL_VECTORS,
    CHANNELS_LAST,
    LANES,
    PANEL,
    panel_of,
    strides_of,
)
from byoc_mlir.dialects.relay import ConstantOp, Weight
from byoc_mlir.dialects.relay.base import ints, shape_of
from byoc_mlir.dialects.relay.constant import derived_array

NAME = "implicit_gemm"
"""What `dnnl.convolution` calls it."""

_KERNEL_PIXELS = 6
"""The most pixels of a kernel. With two vectors of results each, a broadcast and two vectors of
weights they take 15 of 16 registers."""

_LINE = 48
"""About how many pixels are taken for a line where lines do not matter."""

_BLOCK_BYTES = 1 << 15
"""What a block of lines reads of the source for each panel."""

_BLOCK_PIXELS = 48
"""The fewest pixels of a block: how often weights are used that were read once."""

_LEAST_DEPTH = 256
"""Products that a result is the sum of; with fewer, what is beside them counts."""

_FEW_PIXELS = 256
"""Pixels of all images for which oneDNN reads weights too often, or shares them badly."""


@dataclass(frozen=True)
class Variant:
    """What the generated code depends on."""

    pixels: int
    """Those of a kernel; some kernels take one less."""
    padded: bool
    residual: bool
    limits: Limits


@dataclass(frozen=True)
class _Lines:
    """The pixels of all results as the code sees them."""

    count: int
    rows: int
    """Lines of an image."""
    pixels: int
    """Pixels of a line."""

    @property
    def strips(self) -> int:
        """Into how many strips a line is cut, each for one kernel."""
        return -(-self.pixels // _KERNEL_PIXELS)

    @property
    def strip(self) -> int:
        """The pixels of a long strip; short ones have one less."""
        return -(-self.pixels // self.strips)

    @property
    def long_strips(self) -> int:
        """How many long ones there are in a line."""
        return self.pixels - self.strips * (self.strip - 1)


@dataclass(frozen=True)
class ImplicitGemm:
    """Such a convolution, in certain layouts."""

    op: ConvolutionOp
    source_layout: str
    result_layout: str
    epilogue: Epilogue

    @property
    def is_faster(self) -> bool:
        """Whether it takes less time than oneDNN's direct algorithm with AVX2: see docs/dnnl.md."""
        outputs, inputs, *window = shape_of(self.op.weights)
        batch, _, height, width = shape_of(self.op.output)
        if outputs % PANEL or inputs * math.prod(window) < _LEAST_DEPTH:
            return False
        if self._is_flat:
            return batch * height * width <= _FEW_PIXELS
        return math.prod(window) == 9 and min(ints(self.op.strides)) > 1

    @property
    def panels(self) -> int:
        """The columns of the weights, with zeros in the last where outputs end before it does."""
        return -(-shape_of(self.op.weights)[0] // PANEL)

    @property
    def _panel_size(self) -> int:
        return PANEL * math.prod(shape_of(self.op.weights)[1:])

    @property
    def weights_shape(self) -> tuple[int, ...]:
        """Panels, then as many zeros as a pixel has channels, of the source or of the result."""
        zeros = max(shape_of(self.op.weights)[1], self.panels * PANEL)
        return (self.panels * self._panel_size + zeros,)

    def weights(self) -> Weight:
        """The weights in panels: `[height, width, inputs, PANEL]`."""
        constant = self.op.weights.owner
        assert isinstance(constant, ConstantOp)
        source = constant.weight
        packed = derived_array((NAME,), [source.data], lambda: self._packed(source.data))
        return Weight.of(f"{source.name}.{NAME}", packed)

    def _packed(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        packed = np.zeros(self.weights_shape, np.float32)
        size = self._panel_size
        for number in range(self.panels):
            packed[number * size : (number + 1) * size] = panel_of(weights, number).ravel()
        return packed

    @property
    def variant(self) -> Variant:
        """The code that it needs."""
        added = self.epilogue
        has_residual = added.residual is not None
        return Variant(self._lines.strip, self._is_padded, has_residual, added.limits)

    @property
    def _is_padded(self) -> bool:
        return any((*self.op.begins, *self.op.ends))

    @property
    def _is_flat(self) -> bool:
        """Whether each pixel of the result needs one of the source, the next one the next."""
        op = self.op
        geometry = (*shape_of(op.weights)[2:], *ints(op.strides))
        is_one_piece = CHANNELS_LAST == self.source_layout == self.result_layout
        is_flat = {*geometry} == {1} and not self._is_padded
        return is_flat and (is_one_piece or shape_of(op.output)[0] == 1)

    @property
    def _lines(self) -> _Lines:
        batch, _, height, width = shape_of(self.op.output)
        if not self._is_flat:
            return _Lines(batch * height, height, width)
        pixels = batch * height * width
        line = min(_divisors(pixels), key=lambda one: abs(one - _LINE))
        return _Lines(pixels // line, pixels // line, line)

    def words(self) -> list[int]:
        """What the generated code reads: see `codegen/implicit_gemm_table.py`."""
        op, lines = self.op, self._lines
        outputs, inputs, *window = shape_of(op.weights)
        (stride_y, stride_x), (dilation_y, dilation_x) = ints(op.strides), ints(op.dilation)
        source = strides_of(op.arguments[0], self.source_layout)
        result = strides_of(op.output, self.result_layout)
        top, left = op.begins
        start = -(top * source.line + left * source.pixel)
        source_line, result_line = stride_y * source.line, result.line
        if self._is_flat:
            source_line, result_line = (lines.pixels * one.pixel for one in (source, result))
        return [
            *(lines.count, lines.rows, lines.strips, lines.long_strips, self._blocks()),
            *(self.panels, outputs // LANES, self._panel_size, *window, inputs // LANES),
            *(dilation_y * source.line, dilation_x * source.pixel, source.vector),
            *(stride_y, stride_x, dilation_y, dilation_x, top, left),
            *shape_of(op.arguments[0])[2:],
            *(source.image, source_line, stride_x * source.pixel, start),
            *(result.image, result_line, result.pixel, result.vector),
            *self.epilogue.words,
        ]

    def _blocks(self) -> int:
        """Into how many blocks the lines are cut."""
        lines, inputs = self._lines, shape_of(self.op.weights)[1]
        read = 4 * lines.pixels * inputs * math.prod(ints(self.op.strides))
        together = max(_BLOCK_BYTES // read, -(-_BLOCK_PIXELS // lines.pixels))
        return -(-lines.count // together)


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]


def candidate(op: ConvolutionOp, layout: LayoutOf) -> ImplicitGemm | None:
    """The convolution this way; `None` where that is not written."""
    source, result = layout(op.arguments[0]), layout(op.output)
    shape = shape_of(op.weights)
    if len(shape) != 4 or op.groups.value.data != 1 or not isinstance(op.weights.owner, ConstantOp):
        return None
    outputs, inputs = shape[:2]
    known = (CHANNELS_LAST, CHANNEL_VECTORS)
    read = (CHANNELS_LAST,) if any((*op.begins, *op.ends)) else known
    if inputs % LANES or outputs % LANES or source not in read or result not in known:
        return None
    added = epilogue(op, layout)
    return None if added is None else ImplicitGemm(op, source, result, added)
