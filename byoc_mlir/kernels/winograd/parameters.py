"""Run-time parameters of the Winograd code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class ImageParameters(Generic[T]):
    """Run-time parameters of a source or result image."""

    height: T
    width: T
    top: T
    left: T
    """Padding left of the image; `top` is the padding above it."""
    vectors: T
    """Number of vectors that hold a pixel's channels."""
    image: T
    vector: T
    line: T
    pixel: T
    """Elements between pixels; the fields `image`, `vector` and `line` are those between images,
    channel vectors and rows."""
    matrix: T
    tile: T
    """Elements between tiles; `matrix` is the number of elements between matrices."""


@dataclass(frozen=True)
class WinogradParameters(Generic[T]):
    """Partition of the tiles among threads, parameters of both images, and bits of the limits."""

    blocks: T
    """Number of blocks of tiles; one thread processes a block, but all threads share a single
    block."""
    tiles: T
    columns: T
    rows: T
    """Tiles of an image along the height; `columns` are its tiles along the width."""
    panels: T
    results: T
    """Elements between the block's source matrices and its result matrices."""
    block: T
    """Elements between the matrices of consecutive threads."""
    threads: T
    """Maximum number of threads."""
    source: ImageParameters[T]
    result: ImageParameters[T]
    lower: T
    upper: T
