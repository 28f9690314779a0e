"""Inputs and outputs of models: arrays, and their descriptions."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, takewhile
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.locks import cached_property

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""An array of any shape and type."""

_LINE, _CACHE = 1 << 6, 1 << 15
"""Bytes of a cache line, and of an L1 cache."""


def aligned_empty(shape: Sequence[int], dtype: DTypeLike) -> Array:
    """Allocates an array that starts at a cache line; its content is undefined.

    A 64-byte vector across two lines takes two reads, which halves the rate of data in L2.
    """
    kind = np.dtype(dtype)
    size = prod(shape) * kind.itemsize
    memory = np.empty(size + _LINE, np.uint8)
    start = -int(memory.ctypes.data) % _LINE
    return memory[start : start + size].view(kind).reshape(shape)


def aligned(array: Array) -> Array:
    """Returns the array if it is contiguous, row-major and aligned to a cache line, or else such a
    copy.
    """
    if array.flags.c_contiguous and not array.ctypes.data % _LINE:
        return array
    found = aligned_empty(array.shape, array.dtype)
    found[...] = array
    return found


def transposed(matrix: Array) -> Array:
    """Returns a transposed copy of a matrix.

    It fills cache lines of the copy while they are in the cache: for 16 MB, it is 3 times as fast
    as a plain copy.
    """
    lines, columns = matrix.shape
    found = aligned_empty((columns, lines), matrix.dtype)
    block = max(_LINE // matrix.itemsize, _CACHE // max(columns * matrix.itemsize, 1), 1)
    for first in range(0, lines, block):
        found[:, first : first + block] = matrix[first : first + block].T
    return found


@dataclass(frozen=True)
class TensorInfo:
    """An input or output tensor: dense, row-major, in native byte order.

    An unbound dimension is text: its symbol's name, or an expression of symbols.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str, ...]
    space: str = field(default=HOST_SPACE, kw_only=True)
    """Memory space of its elements: the host's, or the name of a device."""

    @property
    def is_static(self) -> bool:
        """True if every dimension is a number."""
        return all(isinstance(size, int) for size in self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """Returns the shape of a static tensor."""
        return tuple(map(int, self.shape))

    def __str__(self) -> str:
        where = "" if self.space == HOST_SPACE else f" on {self.space}"
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]{where}"


Kind: TypeAlias = Literal["tensor", "sequence", "optional", "optional sequence", "map", "maps"]
"""Kind of a model's value. Only an input can be a `map`, and only an output `maps`, a sequence of
maps.
"""

Structure: TypeAlias = "int | tuple[Structure, ...] | None"
"""Structure of a value at run time: rank of a tensor, items of a sequence, or `None` if it is
absent.
"""


def item_name(name: str, number: int) -> str:
    """Returns the name of a tensor in the sequence `name`."""
    return f"{name}[{number}]"


def item_names(name: str, tensors: Container[str]) -> list[str]:
    """Returns the names of the existing tensors of the sequence `name`."""
    return list(takewhile(tensors.__contains__, (item_name(name, number) for number in count())))


MOST_SIZES = 16
"""Maximum number of elements of a tensor that may hold sizes; larger tensors are data."""


def size_input(name: str, number: int) -> str:
    """Returns the name of a segment's input with shape `[0, n]`, where `n` is an element of tensor
    `name`.

    The size `n` has the same name.
    """
    return f"{name}{{{number}}}"


@dataclass(frozen=True)
class StructureInfo(TensorInfo):
    """An input that is a sequence, an optional or a map; `dtype` is the type of its elements."""

    kind: Kind

    @property
    def is_static(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.name}: {self.kind} of {self.dtype}"


@dataclass(frozen=True)
class Trim:
    """Trim of an output to its first entries along `axis`; the tensor `count` holds their
    number.
    """

    count: str
    axis: int


@dataclass(frozen=True)
class MapRow:
    """A tensor of one row that is built from a map."""

    name: str
    dtype: np.dtype[Any]
    keys: Sequence[int] | Sequence[str] | None
    """Keys of the columns, each once; `None`: the keys of the map, in ascending order."""

    @cached_property
    def places(self) -> Mapping[Any, int]:
        """Returns the column of each key."""
        return {key: place for place, key in enumerate(self.keys or ())}
