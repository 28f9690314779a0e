"""What the code of an integer product is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class ResidualParameters(Generic[T]):
    """The bits of what `ByteResidual` has."""

    lower: T
    upper: T
    factor: T
    shift: T


@dataclass(frozen=True)
class BytesParameters(Generic[T]):
    """Of a quantised result: what stands for 0, the least and the largest number, and the rest."""

    zero_point: T
    lower: T
    upper: T
    residual: ResidualParameters[T]


@dataclass(frozen=True)
class IntegerGemmParameters(Generic[T]):
    """Sizes, and distances in left numbers."""

    rows: T
    """Those of the result: the pixels of all images."""
    blocks: T
    """Into how many blocks the rows are cut."""
    panels: T
    outputs: T
    """The columns of the result."""
    group_panels: T
    group_outputs: T
    """The panels, and the columns of the result, of a group of channels."""
    height: T
    width: T
    """The pixels of an image of the result."""
    image: T
    line: T
    pixel: T
    """From the window of a pixel of the result to that in the next image, line and pixel."""
    window_height: T
    window_width: T
    window_line: T
    window_pixel: T
    """The window, and what its lines and pixels step."""
    group: T
    """From a group of channels to the next."""
    words: T
    """Those of a pixel of the window."""
    shift: T
    """What is added to right numbers that are widened."""
    bytes: BytesParameters[T]
