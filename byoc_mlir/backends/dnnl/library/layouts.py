"""Memory layouts of tensors, in oneDNN's notation.

A layout is a string with one letter for each dimension, outermost first: `abcd` is row-major,
`acdb` has the channels innermost (NHWC). A dimension with a capital letter is blocked; the block
size follows at the end: `aBcd8b` is row-major over `[N, C / 8, H, W, 8]`. The last block is padded
with zeros. https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_understanding_memory_formats.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_lowercase

ANY = "any"
"""Layout that leaves the choice to the primitive; only packed weights may have it."""

_SYNTAX = re.compile(r"([a-zA-Z]*?)((?:\d+[a-z])*)")


def plain(rank: int) -> str:
    """Returns the row-major layout: `abcd` for rank 4, "" for rank 0."""
    return ascii_lowercase[:rank]


def channels_last(rank: int) -> str:
    """Returns the NHWC layout: `acdb` for rank 4."""
    return "a" + ascii_lowercase[2:rank] + "b"


def blocked_channels(rank: int, block: int) -> str:
    """Returns the layout with blocked channels: `aBcd8b` for rank 4 and blocks of 8."""
    return f"aB{ascii_lowercase[2:rank]}{block}b"


@lru_cache
def blocks(layout: str) -> tuple[tuple[int, int], ...]:
    """Returns the inner blocks as `(dimension, size)`: `((1, 8),)` for `aBcd8b`."""
    match = _SYNTAX.fullmatch(layout)
    if match is None:
        raise ValueError(f"'{layout}' is not a layout")
    return tuple(
        (ascii_lowercase.index(letter), int(size))
        for size, letter in re.findall(r"(\d+)([a-z])", match[2])
    )


@lru_cache
def order(layout: str) -> tuple[int, ...]:
    """Returns the dimensions from the outermost to the innermost, without the inner blocks."""
    match = _SYNTAX.fullmatch(layout)
    if match is None:
        raise ValueError(f"'{layout}' is not a layout")
    return tuple(ascii_lowercase.index(letter) for letter in match[1].lower())


def permuted(layout: str, axes: Sequence[int]) -> str:
    """Returns the layout of the same memory after the transposition `axes`: new dimension `i` is
    `axes[i]`.
    """
    return "".join(ascii_lowercase[list(axes).index(dimension)] for dimension in order(layout))


def before_permutation(axes: Sequence[int]) -> str:
    """Returns the layout that becomes row-major by the transposition `axes`."""
    return "".join(ascii_lowercase[axis] for axis in axes)


@lru_cache
def is_valid(layout: str, rank: int) -> bool:
    """True if the string is a layout for tensors of the given rank."""
    match = _SYNTAX.fullmatch(layout)
    if match is None:
        return False
    letters, suffix = match[1], match[2]
    split = {letter.lower() for letter in letters if letter.isupper()}
    named = set(re.findall(r"\d+([a-z])", suffix))
    return sorted(letters.lower()) == list(plain(rank)) and split == named


def padded(dims: Sequence[int], layout: str) -> tuple[int, ...]:
    """Returns the dimensions, with every blocked one rounded up to whole blocks."""
    sizes = list(dims)
    for dimension, size in blocks(layout):
        sizes[dimension] = -(-sizes[dimension] // size) * size
    return tuple(sizes)


def byte_size(dims: Sequence[int], layout: str, element_bytes: int = 4) -> int:
    """Returns the bytes of a tensor, including its padding."""
    return math.prod(padded(dims, layout)) * element_bytes


def strides(dims: Sequence[int], layout: str) -> tuple[int, ...]:
    """Returns the strides of an unblocked layout, in elements."""
    result, step = [0] * len(dims), 1
    for dimension in reversed(order(layout)):
        result[dimension] = step
        step *= dims[dimension]
    return tuple(result)


def is_piece(dims: Sequence[int], layout: str, axis: int) -> bool:
    """True if a tensor of this shape and layout is a contiguous part of any tensor that is larger
    along `axis`.
    """
    outside = order(layout)[: order(layout).index(axis)]
    is_whole = padded(dims, layout)[axis] == dims[axis]
    return is_whole and all(dims[dimension] == 1 for dimension in outside)


def same_bytes(dims: Sequence[int], one: str, two: str) -> bool:
    """True if both layouts give every element of the tensor the same offset."""
    return one == two or _placement(dims, one) == _placement(dims, two)


def _placement(dims: Sequence[int], layout: str) -> object:
    """Returns a canonical form of a layout of `dims`.

    The form is the nesting of loops over memory, without loops of one iteration.
    """
    if padded(dims, layout) != tuple(dims):
        return layout
    inner = blocks(layout)
    outer = list(dims)
    for dimension, size in inner:
        outer[dimension] //= size
    loops = [(dimension, outer[dimension]) for dimension in order(layout)] + list(inner)
    merged: list[tuple[int, int]] = []
    for dimension, size in loops:
        if size == 1:
            continue
        if merged and merged[-1][0] == dimension:
            merged[-1] = (dimension, merged[-1][1] * size)
        else:
            merged.append((dimension, size))
    return tuple(merged)
