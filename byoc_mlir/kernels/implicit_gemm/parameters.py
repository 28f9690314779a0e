"""What the code of an implicit product is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from byoc_mlir.kernels.convolution import Windows

T = TypeVar("T")


@dataclass(frozen=True)
class Parameters(Generic[T]):
    """Sizes and distances, those in memory in elements, and the bits of the limits."""

    pieces: T
    """All pieces of the lines of all images of the result."""
    image_pieces: T
    line_pieces: T
    """Those of one image, and of one line: a short line is one piece."""
    piece_pixels: T
    """Pixels from one piece of a line to the next one."""
    strips: T
    """Into how many strips of pixels a piece is cut, each for one kernel; `RestStrips` differ."""
    long_strips: T
    """How many have the most pixels; the others one less."""
    blocks: T
    """Into how many blocks the pieces are cut."""
    panels: T
    outputs: T
    """The vectors of the result's channels."""
    panel: T
    part: T
    """The weights of a panel, and those of a part of the window, which all strips of a block meet
    before the next."""
    parts: T
    line_parts: T
    """The parts of the window, and of each of its lines."""
    part_height: T
    part_width: T
    inputs: T
    """What is summed: a part of the window, and the vectors of the source's channels."""
    window_line: T
    window_pixel: T
    input: T
    """What these step in the source."""
    windows: Windows[T]
    source_image: T
    source_line: T
    source_pixel: T
    """From the window of a result to that in the next image, the next line, and to the next."""
    source_start: T
    """From the first pixel to the first window."""
    result_image: T
    result_line: T
    result_pixel: T
    result_vector: T
    """From image to image, line to line, pixel to pixel and from vector to vector."""
    lower: T
    upper: T
    """The least and the largest result."""
