"""Random numbers, shapes and arrays that are the same on every machine.

All come from `random.Random` and exact arithmetic: a normal distribution would depend on the
machine's logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any, Literal, TypeAlias

import ml_dtypes
import numpy as np

from byoc_mlir.tensors import Array

Dtype: TypeAlias = np.dtype[Any]
Shape: TypeAlias = tuple[int, ...]
Style: TypeAlias = Literal["plain", "positive", "integral", "extreme", "limits"]
"""Style of an array's values: small ones, small ones above zero, multiples of a half.

`extreme` adds infinities, NaN and signed zeros; `limits` also adds denormals and the largest
values.
"""

MAX_ELEMENTS = 4096

_SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17)
_RANKS = (0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6)


def random_shape(rng: Random, least: int = 0, most: int = 6, empty: float = 0.02) -> Shape:
    """Returns a shape of rank `least` to `most` with at most `MAX_ELEMENTS` elements.

    `empty` is the probability that an axis has no elements.
    """
    ranks = [rank for rank in _RANKS if least <= rank <= most] or [least]
    shape: list[int] = []
    for _ in range(rng.choice(ranks)):
        room = MAX_ELEMENTS // max(1, math.prod(shape))
        size = rng.choice([size for size in _SIZES if size <= max(1, room)])
        shape.append(0 if rng.random() < empty else size)
    return tuple(shape)


def broadcastable(rng: Random, shape: Sequence[int]) -> Shape:
    """Returns a shape that broadcasts to `shape`."""
    kept = shape[rng.randint(0, len(shape)) :] if rng.random() < 0.4 else shape
    return tuple(1 if rng.random() < 0.3 else size for size in kept)


def random_array(rng: Random, dtype: Dtype, shape: Sequence[int], style: Style) -> Array:
    """Returns an array in the given style."""
    count = math.prod(shape)
    words = np.frombuffer(rng.randbytes(2 * count), "<i2").astype(np.int64)
    if dtype == np.bool_:
        return (words % 2 == 1).reshape(shape)
    array = _float_array(words, dtype, style) if is_float(dtype) else _ints(words, dtype, style)
    if style in ("extreme", "limits") and count:
        chosen = rng.sample(range(count), min(count, rng.randint(1, max(1, count // 3))))
        special = _specials(dtype, style == "limits")
        for index in chosen:
            array[index] = rng.choice(special)
    return array.reshape(shape)


def is_float(dtype: Dtype) -> bool:
    """True if the type is a floating-point one, bfloat16 included."""
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def _specials(dtype: Dtype, largest: bool) -> Array:
    """Returns the values of a type at which mistakes show.

    Sums of its largest floats are finite in one order and infinite in another. Denormals may become
    zero, and so NaN beside an infinity, when a factor is multiplied in.
    """
    if is_float(dtype):
        info = ml_dtypes.finfo(dtype)
        numbers = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5]
        numbers += [float(info.smallest_normal), 88.5, -104.0]
        if largest:
            tiny = float(info.smallest_subnormal)
            numbers += [float(info.max), float(info.min), 1e30, tiny, -tiny]
        with np.errstate(over="ignore"):
            return np.array(numbers).astype(dtype)
    info = np.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    return np.array([least, least + 1, most, most - 1, 0, 1, most // 2, info.bits - 1], dtype)


def _float_array(words: Array, dtype: Dtype, style: Style) -> Array:
    if style == "integral":
        numbers = (words % 17 - 8) / 2
    elif style == "positive":
        numbers = (np.abs(words) + 256) / 16384
    else:
        numbers = words / 12288
    return numbers.astype(dtype)


def _ints(words: Array, dtype: Dtype, style: Style) -> Array:
    if style == "positive":
        return (words % 7 + 1).astype(dtype)
    return (words % 17 - (8 if dtype.kind == "i" else 0)).astype(dtype)
