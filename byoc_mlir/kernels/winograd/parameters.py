"""What the code of Winograd's algorithm is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class ImageParameters(Generic[T]):
    """A source or result."""

    height: T
    width: T
    top: T
    left: T
    """Its size and its padding."""
    vectors: T
    """Those that the channels of a pixel make."""
    image: T
    vector: T
    line: T
    pixel: T
    """Elements from image to image, vector to vector, line to line and pixel to pixel."""
    matrix: T
    tile: T
    """Elements from matrix to matrix and from tile to tile."""


@dataclass(frozen=True)
class WinogradParameters(Generic[T]):
    """How the tiles are shared by threads, the two images, and the bits of the limits."""

    blocks: T
    """Into how many blocks the tiles are cut; one thread handles a block, all of them the only."""
    tiles: T
    columns: T
    rows: T
    """The tiles of an image along both axes."""
    panels: T
    results: T
    """Elements from the source's matrices to the result's."""
    block: T
    """Elements from a thread's matrices to the next one's."""
    threads: T
    """The most threads there may be."""
    source: ImageParameters[T]
    result: ImageParameters[T]
    lower: T
    upper: T
