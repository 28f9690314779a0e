"""What the code of a depthwise convolution is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from byoc_mlir.kernels.convolution import Windows

T = TypeVar("T")


@dataclass(frozen=True)
class Parameters(Generic[T]):
    """Sizes and distances, those in memory in elements."""

    lines: T
    """All lines of all images of the result."""
    rows: T
    """Those of one image."""
    strips: T
    long_strips: T
    """Into how many strips of pixels a line is cut, and how many of them are long."""
    blocks: T
    """Those of a pixel's channels, each of which is handled at once."""
    window: T
    """The weights of a window, of one block of channels."""
    window_height: T
    window_line: T
    """What a line of the window steps in the source."""
    weights: T
    """All of them; zeros follow."""
    windows: Windows[T]
    source_image: T
    source_line: T
    source_pixel: T
    result_image: T
    result_line: T
    result_pixel: T
    """From image to image, line to line and pixel to pixel."""
