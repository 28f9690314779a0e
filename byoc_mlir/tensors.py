"""What a model takes and gives: arrays, and what describes them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, takewhile
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""An array of any shape and type."""

_LINE, _CACHE = 1 << 6, 1 << 15
"""Bytes of a cache line, and of a first cache."""


def aligned_empty(shape: Sequence[int], dtype: DTypeLike) -> Array:
    """A new array whose memory begins with a cache line; its content is whatever was there.

    A vector of 64 bytes that lies across two lines takes two reads: what is in a second cache
    comes at half the rate then.
    """
    kind = np.dtype(dtype)
    size = prod(shape) * kind.itemsize
    memory = np.empty(size + _LINE, np.uint8)
    start = -int(memory.ctypes.data) % _LINE
    return memory[start : start + size].view(kind).reshape(shape)


def aligned(array: Array) -> Array:
    """The array, if its memory begins with a cache line and is in order of its indices; else a copy
    of which that is true."""
    if array.flags.c_contiguous and not array.ctypes.data % _LINE:
        return array
    found = aligned_empty(array.shape, array.dtype)
    found[...] = array
    return found


def transposed(matrix: Array) -> Array:
    """A copy of a matrix with its dimensions exchanged.

    Cache lines of the copy are filled while they are in the cache: a matrix of 16 MB takes a third
    of the time that one copy of all takes.
    """
    lines, columns = matrix.shape
    found = aligned_empty((columns, lines), matrix.dtype)
    block = max(_LINE // matrix.itemsize, _CACHE // max(columns * matrix.itemsize, 1), 1)
    for first in range(0, lines, block):
        found[:, first : first + block] = matrix[first : first + block].T
    return found


@dataclass(frozen=True)
class TensorInfo:
    """A tensor that goes in or comes out: dense, row-major, in native byte order.

    A dimension that is not bound is text: its symbol's name, or an expression of symbols.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str, ...]

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a number."""
        return all(isinstance(size, int) for size in self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape of a tensor that is static."""
        return tuple(map(int, self.shape))

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


Kind: TypeAlias = Literal["tensor", "sequence", "optional", "optional sequence", "map", "maps"]
"""What a value of a model is. Only an input can be a `map`, and only an output `maps`, a sequence
of them."""

Structure: TypeAlias = "int | tuple[Structure, ...] | None"
"""What a value is like at run time: the rank of a tensor, the items of a sequence, not there."""


def item_name(name: str, number: int) -> str:
    """The name of a tensor in the sequence `name`."""
    return f"{name}[{number}]"


def item_names(name: str, tensors: Container[str]) -> list[str]:
    """Returns the names of the tensors that there are of the sequence `name`."""
    return list(takewhile(tensors.__contains__, (item_name(name, number) for number in count())))


MOST_SIZES = 16
"""Tensors of more elements are data; those of up to this many may be sizes."""


def size_input(name: str, number: int) -> str:
    """The input of a stage that says by its shape, `[0, n]`, what an element of the tensor `name`
    is; also the name of that size."""
    return f"{name}{{{number}}}"


@dataclass(frozen=True)
class StructureInfo(TensorInfo):
    """An input that is a sequence, an optional or a map; `dtype` is that of what is in it."""

    kind: Kind

    @property
    def is_static(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.name}: {self.kind} of {self.dtype}"


@dataclass(frozen=True)
class Trim:
    """Only the first entries along `axis` count, as many as the tensor `count` says."""

    count: str
    axis: int


@dataclass(frozen=True)
class MapRow:
    """A tensor of one row that is made of a map."""

    name: str
    dtype: np.dtype[Any]
    keys: Sequence[int] | Sequence[str] | None
    """Of its columns, each once; `None`: those of the map, in ascending order."""

    @cached_property
    def places(self) -> Mapping[Any, int]:
        """The column of each key."""
        return {key: place for place, key in enumerate(self.keys or ())}
