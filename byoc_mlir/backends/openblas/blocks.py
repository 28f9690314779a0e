"""Choice of the blocks of a matmul, one call each: the fastest ones measured.

OpenBLAS packs both matrices in each call, except in calls so small that its kernels read the
matrices in place. The profitability depends on the processor and on the number of rows that use a
packed matrix.
"""

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
from byoc_mlir.backends.openblas.products import (
    AS_STORED,
    ROW_MAJOR,
    TRANSPOSED,
    BatchedGemm,
    Block,
)
from byoc_mlir.calibration import Calibration, Measurement, current_calibration
from byoc_mlir.errors import ByocError
from byoc_mlir.runtime.program import Array
from byoc_mlir.runtime.system import libraries
from byoc_mlir.runtime.system.threads import thread_clock

_CANDIDATES = (
    Block(64, 96, 128),
    Block(64, 96, 192),
    Block(64, 64, 256),
    Block(16, 128, 192),
    Block(16, 96, 384),
    Block(16, 64, 512),
)
"""Candidates of up to about a million MACs, the most for which no build of OpenBLAS packs."""

_CLEARLY = 0.95
"""Maximum time of the blocks, as a fraction of the time of one call."""

_MOST_ROWS = 512
"""Maximum number of rows; for more rows, the cost of packing is negligible."""

_MATRIX_ELEMENTS = 1 << 21
"""Number of elements of matrix B to measure; they exceed the L2 cache of a core."""


def block_for(product: BatchedGemm, *, may_pack: bool = False) -> Block | None:
    """Returns the block size of a matmul, or `None` for one call.

    `None` means that one call is as fast, or that the answer is unknown and may not be measured.

    Args:
        may_pack: True if a matrix B that is stored transposed may be packed into panels in advance.
    """
    has_panels = product.transposes == (False, True) and may_pack
    is_as_stored = product.transposes == (False, False)
    if product.is_vector or not (has_panels or is_as_stored) or product.rows > _MOST_ROWS:
        return None
    calibration = current_calibration()
    whole = Block(product.rows, product.units, product.depth)
    key = f"openblas/{whole}{' panels' if has_panels else ''}"
    calibration.view(_check_group)
    known = calibration.find(key)
    if known is not None and calibration.is_kept and known.source != load_library().configuration:
        known = None  # another build measured it
    if known is None and calibration.may_measure:
        block = _fastest(whole, has_panels)
        text = "" if block is None else str(block)
        known = Measurement(key, "blocks", load_library().configuration, text)
        calibration.add(known)
    return _block(known) if known is not None and known.text else None


def _check_group(calibration: Calibration) -> None:
    """Checks that the calibration of OpenBLAS holds blocks only.

    Raises:
        ByocError: an entry of the file is no block.
    """
    for one in list(calibration.group("openblas").values()):
        if one.text:
            _block(one)


def _block(known: Measurement) -> Block:
    """Returns the block of a measurement.

    Raises:
        ByocError: the entry of the file is no block.
    """
    try:
        return Block.of(known.text)
    except ValueError as error:
        raise ByocError(f"the measurement '{known.key}': {error}") from error


def _fastest(whole: Block, has_panels: bool) -> Block | None:
    part = Block(whole.rows, min(whole.units, _MATRIX_ELEMENTS // whole.depth or 1), whole.depth)
    blocks = dict.fromkeys(one.within(part) for one in _CANDIDATES)
    if not has_panels and part in blocks:
        return None  # one call is such a block
    one_way, other = (Matrix.TRANSPOSED, Matrix.PANELS) if has_panels else (Matrix.ROWS,) * 2
    ways = (BlockedWay(part, one_way), *(BlockedWay(block, other) for block in blocks))
    one_call, *times = seconds_of(part, ways, _MATRIX_ELEMENTS)
    shortest, best = min(zip(times, blocks, strict=True), key=lambda pair: pair[0])
    if shortest >= _CLEARLY * one_call:
        return None
    return best


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
    """Way to compute a matmul: its block size, and the storage of operand B."""

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
