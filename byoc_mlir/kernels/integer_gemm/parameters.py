"""Run-time parameters of the integer GEMM code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class ResidualParameters(Generic[T]):
    """Fields of `ByteResidual`, as bits."""

    lower: T
    upper: T
    factor: T
    shift: T


@dataclass(frozen=True)
class BytesParameters(Generic[T]):
    """Zero point, limits and residual of a quantised result."""

    zero_point: T
    lower: T
    upper: T
    residual: ResidualParameters[T]


@dataclass(frozen=True)
class IntegerGemmParameters(Generic[T]):
    """Run-time parameters: sizes, and distances in elements of operand A."""

    rows: T
    """Rows of the result: the pixels of all images."""
    blocks: T
    """Number of blocks of rows."""
    panels: T
    outputs: T
    """Columns of the result."""
    group_panels: T
    group_outputs: T
    """Columns of the result for one group of channels; `group_panels` are their panels."""
    height: T
    width: T
    """Width of an image of the result; `height` is its height."""
    image: T
    line: T
    pixel: T
    """Distance between windows of adjacent result pixels; `line` and `image` are those between rows
    and between images."""
    window_height: T
    window_width: T
    window_line: T
    window_pixel: T
    """Distance between the window's pixels; `window_line` is the distance between its rows."""
    group: T
    """Distance between groups of channels."""
    words: T
    """Number of 32-bit groups of a run of the window."""
    shift: T
    """Shift that is added to the widened elements of operand B."""
    bytes: BytesParameters[T]
