"""Number types of less than a half: their codes, one byte each, and the tables to and from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    Float4E2M1FNType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    IntegerType,
)
from xdsl.ir import Attribute

from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.tensors import Array

_FLOATS = (
    *(Float4E2M1FNType, Float8E4M3FNType, Float8E4M3FNUZType),
    *(Float8E5M2FNUZType, Float8E5M2Type, Float8E8M0FNUType),
)
_INFINITY_BITS = 0x7F800000


def is_small_float(element_type: Attribute) -> bool:
    """Whether it is a float of eight bits or less."""
    return isinstance(element_type, _FLOATS)


def is_small_integer(element_type: Attribute) -> bool:
    """Whether it is an integer of two or four bits."""
    return isinstance(element_type, IntegerType) and 1 < element_type.width.data < 8


def is_small(element_type: Attribute) -> bool:
    """Whether values are kept as codes, one byte each."""
    return is_small_float(element_type) or is_small_integer(element_type)


@cache
def decoding_table(element_type: Attribute) -> Array:
    """`[256]`: the number that each code stands for, as `f32` or `i32`."""
    wide = np.float32 if is_small_float(element_type) else np.int32
    codes = np.arange(256, dtype=np.uint8)
    if is_small_integer(element_type):
        assert isinstance(element_type, IntegerType)
        codes &= (1 << element_type.width.data) - 1
    if isinstance(element_type, Float4E2M1FNType):
        codes &= 15
    return codes.view(numpy_dtype(element_type)).astype(wide)


@dataclass(frozen=True)
class Encoding:
    """How an `f32` becomes a code: by its magnitude's place among the thresholds.

    `thresholds [n]` ascend; a magnitude from `thresholds[i]` up to the next has the code
    `positive[i]`, or `negative[i]` below zero. Entry 0 is what lies below all of them. `n` is a
    power of two, the last thresholds are NaN, which nothing reaches.
    """

    thresholds: Array
    positive: Array
    negative: Array
    nan: int


@cache
def encoding(element_type: Attribute) -> Encoding:
    """The encoding of a small float, found by asking numpy for the conversion."""
    dtype = numpy_dtype(element_type)

    def codes(bits: Array) -> Array:
        with np.errstate(all="ignore"):
            return bits.astype(np.uint32).view(np.float32).astype(dtype).view(np.uint8)

    starts = [0]
    while (end := _last_alike(starts[-1], codes)) < _INFINITY_BITS:
        starts.append(end + 1)
    bits = np.asarray(starts)
    count = 1 << (len(starts) - 1).bit_length()
    thresholds = np.full(count, np.nan, np.float32)
    thresholds[: len(starts)] = bits.astype(np.uint32).view(np.float32)
    padding = (0, count - len(starts))
    positive = np.pad(codes(bits), padding)
    negative = np.pad(codes(bits | 0x80000000), padding)
    (nan,) = codes(np.asarray([0x7FC00000]))
    return Encoding(thresholds, positive, negative, int(nan))


def _last_alike(start: int, codes: Any) -> int:
    """The last bit pattern from `start` on with its code: in doubling steps, then by halving."""
    wanted = codes(np.asarray([start]))[0]
    low, step = start, 1
    while low + step <= _INFINITY_BITS and codes(np.asarray([low + step]))[0] == wanted:
        low += step
        step *= 2
    while step:
        if low + step <= _INFINITY_BITS and codes(np.asarray([low + step]))[0] == wanted:
            low += step
        step //= 2
    return low
