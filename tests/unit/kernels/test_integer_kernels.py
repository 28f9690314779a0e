"""Integer products for vectors of every length, and each way to multiply that there is here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from integer_runner import Compiled, expected_sums
from numpy.typing import NDArray

from byoc_mlir.kernels.integer_gemm.epilogue import IntegerEpilogue
from byoc_mlir.kernels.integer_gemm.integer_gemm import IntegerGemm
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit
from byoc_mlir.runtime.cpu import Cpu

_PAIRS = [IntegerUnit(4, 16, False), IntegerUnit(8, 16, False), IntegerUnit(16, 32, False)]
_VNNI = [IntegerUnit(lanes, registers, True) for lanes, registers in ((4, 16), (8, 16), (16, 32))]
_WIDE = [replace(unit[-1], panel_vectors=4) for unit in (_PAIRS, _VNNI)]
_HAS_VNNI = {"avx512_vnni", "avx512vl"} <= set(Cpu.host().features)
"""Instructions that LLVM cannot make of others: where they are missing there is nothing to run."""

UNITS = pytest.mark.parametrize(
    "unit",
    [*_PAIRS[:2], _WIDE[0], *((*_VNNI[:2], _WIDE[1]) if _HAS_VNNI else ())],
    ids=lambda unit: unit.name,
)


def _left(it: IntegerGemm, *, saturating: bool = False) -> NDArray[np.int16]:
    """Left numbers: bytes without a sign, or with the zero point taken off."""
    shape = (it.images, it.lines, it.pixels, it.channels)
    low, high = (0, 256) if it.unit.has_vnni else (-255, 256)
    generator = np.random.default_rng(0)
    if saturating:
        return generator.choice(np.array([low, high - 1], np.int16), shape)
    return generator.integers(low, high, shape, np.int16)


def _right(it: IntegerGemm, *, saturating: bool = False) -> NDArray[np.int16]:
    shape = (*it.window, it.channels, it.outputs)
    low, high = (-128, 128) if it.unit.has_vnni else (-255, 256)
    generator = np.random.default_rng(1)
    if saturating:
        return np.full(shape, high - 1, np.int16)
    return generator.integers(low, high, shape, np.int16)


def _start(it: IntegerGemm) -> NDArray[np.int32]:
    return np.random.default_rng(2).integers(-(10**6), 10**6, it.outputs, np.int32)


@UNITS
@pytest.mark.parametrize(("rows", "steps", "columns"), [(1, 7, 5), (131, 257, 130)])
def test_matrices(unit: IntegerUnit, rows: int, steps: int, columns: int) -> None:
    it = IntegerGemm.of_matrices(unit, rows, steps, columns, IntegerEpilogue())
    left, right, start = _left(it), _right(it), _start(it)
    found = Compiled(it)(left, right, start=start)
    np.testing.assert_array_equal(found, expected_sums(it, left, right) + start)


@UNITS
def test_numbers_that_saturate_16_bits(unit: IntegerUnit) -> None:
    it = IntegerGemm.of_matrices(unit, 7, 96, 40, IntegerEpilogue())
    left, right = (made(it, saturating=True) for made in (_left, _right))
    found = Compiled(it)(left, right, start=np.zeros(40, np.int32))
    np.testing.assert_array_equal(found, expected_sums(it, left, right))


@UNITS
@pytest.mark.parametrize("dilation", [(1, 3), (2, 1)], ids=["apart", "neighbours"])
def test_windows(unit: IntegerUnit, dilation: tuple[int, int]) -> None:
    """Several images, tiles over their borders, strides, dilation and channels filled up."""
    it = IntegerGemm(unit, 3, 12, 9, 5, 37, (3, 2), (2, 1), dilation)
    left, right, start = _left(it), _right(it), _start(it)
    found = Compiled(it)(left, right, start=start)
    np.testing.assert_array_equal(found, expected_sums(it, left, right) + start)


@UNITS
@pytest.mark.parametrize(
    "limits",
    [
        IntegerEpilogue("bytes", False, 100, 100, 255),
        IntegerEpilogue("bytes", False, -3, -128, 127),
    ],
)
def test_bytes(unit: IntegerUnit, limits: IntegerEpilogue) -> None:
    it = IntegerGemm.of_matrices(unit, 29, 40, 75, limits)
    left, right, start = _left(it), _right(it), _start(it)
    scale = np.random.default_rng(3).uniform(1e-6, 1e-3, 75).astype(np.float32)
    found = Compiled(it)(left, right, start=start, scale=scale)
    sums = (expected_sums(it, left, right) + start).astype(np.int32)
    rounded = np.rint(sums.astype(np.float32) * scale) + np.float32(limits.zero_point)
    wanted = rounded.clip(limits.lower, limits.upper).astype(np.int32).astype(np.int8)
    np.testing.assert_array_equal(found, wanted)


@UNITS
@pytest.mark.parametrize("zero_point", [2, 3])
def test_halves_of_bytes_are_rounded_to_even(unit: IntegerUnit, zero_point: int) -> None:
    epilogue = IntegerEpilogue("bytes", False, zero_point, -128, 127)
    it = IntegerGemm.of_matrices(unit, 8, 1, 40, epilogue)
    sums = np.arange(8)[:, None] * np.arange(-20, 20)
    left, right = sums[:, 21].reshape(1, 1, 8, 1), np.arange(-20, 20).reshape(1, 1, 1, 40)
    scale, start = np.full(40, 0.5, np.float32), np.zeros(40, np.int32)
    found = Compiled(it)(left, right, start=start, scale=scale)
    np.testing.assert_array_equal(found, np.rint(sums / 2) + zero_point)


@pytest.mark.parametrize(("rows", "tile"), [(1, 1), (5, 5), (49, 5), (196, 6), (3136, 6)])
def test_tiles_fit_the_rows(rows: int, tile: int) -> None:
    it = IntegerGemm.of_matrices(IntegerUnit(8, 16, False), rows, 64, 16, IntegerEpilogue())
    assert [variant.rows for variant in it.variants] == [tile]


@UNITS
def test_numbers(unit: IntegerUnit) -> None:
    it = IntegerGemm.of_matrices(unit, 10, 33, 20, IntegerEpilogue("numbers", offset=True))
    left, right, start = _left(it), _right(it), _start(it)
    generator = np.random.default_rng(4)
    scale, offset = (generator.uniform(-1, 1, 20).astype(np.float32) for _ in range(2))
    found = Compiled(it)(left, right, start=start, scale=scale, offset=offset)
    wanted = (expected_sums(it, left, right) + start).astype(np.float32) * scale
    np.testing.assert_array_equal(found, wanted + offset)


@pytest.mark.parametrize(
    ("features", "unit"),
    [
        (("avx2", "avx512bw", "avx512_vnni"), _VNNI[2]),
        (("avx2", "avx512bw"), _PAIRS[2]),
        (("avx2", "avx_vnni"), _VNNI[1]),
        (("avx2",), _PAIRS[1]),
        (("sse4_1",), _PAIRS[0]),
        (("asimd",), replace(_PAIRS[0], registers=32)),
    ],
)
def test_units_of_processors(features: tuple[str, ...], unit: IntegerUnit) -> None:
    assert IntegerUnit.of(features) == unit
