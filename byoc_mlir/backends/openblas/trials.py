"""Measurement of OpenBLAS on matmuls that are split into blocks."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import cycle, product
from typing import TypeAlias, cast

import numpy as np

from byoc_mlir.backends.openblas.library import SET_THREADS, SGEMM, load_library
from byoc_mlir.backends.openblas.products import AS_STORED, ROW_MAJOR, TRANSPOSED, Block
from byoc_mlir.runtime.program import Array
from byoc_mlir.runtime.system import libraries
from byoc_mlir.runtime.system.threads import thread_clock

_ROUNDS = 6
"""Interleaved runs of each way to compute; the shortest counts."""

_Call: TypeAlias = tuple[int | float, ...]
"""Arguments of a call."""

_EMPTY: _Call = (ROW_MAJOR, AS_STORED, AS_STORED, 0, 0, 0, 1.0, 0, 1, 0, 1, 1.0, 0, 1)
_EMPTY_CALLS = 100

_SIZE, _POINTER = ctypes.c_int64, ctypes.c_void_p
_PARAMETERS = (
    *(ctypes.c_int, ctypes.c_int, ctypes.c_int, _SIZE, _SIZE, _SIZE, ctypes.c_float),
    *(_POINTER, _SIZE, _POINTER, _SIZE, ctypes.c_float, _POINTER, _SIZE),
)


class Matrix(Enum):
    """Storage of operand B."""

    ROWS = auto()
    TRANSPOSED = auto()
    PANELS = auto()


@dataclass(frozen=True)
class BlockedWay:
    """A way to compute a matmul: its block size, and the storage of operand B."""

    block: Block
    stored: Matrix


def seconds_of(whole: Block, ways: Sequence[BlockedWay], elements: int) -> list[float]:
    """Measures several ways to compute a matmul on one thread, without the overhead of Python.

    Args:
        whole: size of the matmul.
        ways: the ways to measure.
        elements: number of elements of the memory that holds copies of B one after another, so that
          L1 and L2 do not hold the next one.
    """
    rows, units, depth = whole.rows, whole.units, whole.depth
    a, out = np.ones((rows, depth), np.float32), np.zeros((rows, units), np.float32)
    size = depth * max(-(-units // way.block.units) * way.block.units for way in ways)
    matrices = np.ones((max(1, elements // size), size), np.float32)
    sgemm = _function()
    empty = _seconds(sgemm, [_EMPTY] * _EMPTY_CALLS) / _EMPTY_CALLS
    shortest, turns = [math.inf] * len(ways), cycle(matrices)
    for _, (number, way) in product(range(_ROUNDS), enumerate(ways)):
        calls = list(_calls(whole, way, a, next(turns), out))
        taken = _seconds(sgemm, calls) - empty * len(calls)
        shortest[number] = min(shortest[number], taken)
    return shortest


def _function() -> Callable[..., None]:
    library = libraries.load_library(load_library().path)
    library[SET_THREADS](1)
    return cast(Callable[..., None], ctypes.CFUNCTYPE(None, *_PARAMETERS)((SGEMM, library)))


def _seconds(function: Callable[..., None], calls: Sequence[_Call]) -> float:
    """Measures the calls in CPU time of this thread, which excludes other processes."""
    clock = thread_clock()
    start = clock()
    for call in calls:
        function(*call)
    return clock() - start


def _calls(whole: Block, way: BlockedWay, a: Array, b: Array, out: Array) -> Iterator[_Call]:
    """Yields the arguments of the calls for a matmul, in the order of the generated code."""
    block, is_transposed = way.block, way.stored is Matrix.TRANSPOSED
    how = TRANSPOSED if is_transposed else AS_STORED
    unit_stride = 1 if way.stored is Matrix.ROWS else whole.depth
    rows_width = block.units if way.stored is Matrix.PANELS else whole.units
    step_stride = 1 if is_transposed else rows_width
    width = whole.depth if is_transposed else rows_width
    rows = range(0, whole.rows, block.rows)
    units, steps = range(0, whole.units, block.units), range(0, whole.depth, block.depth)
    for row, unit, step in product(rows, units, steps):
        here = block.within(Block(whole.rows - row, whole.units - unit, whole.depth - step))
        in_b = unit * unit_stride + step * step_stride
        yield (
            *(ROW_MAJOR, AS_STORED, how, here.rows, here.units, here.depth, 1.0),
            *(_address(a, row * whole.depth + step), whole.depth, _address(b, in_b), width),
            *(1.0, _address(out, row * whole.units + unit), whole.units),
        )


def _address(matrix: Array, element: int) -> int:
    return int(matrix.ctypes.data) + matrix.itemsize * element
