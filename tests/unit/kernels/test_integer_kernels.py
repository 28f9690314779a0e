"""Int8 GEMMs for vectors of every length, and each way to multiply that this machine has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from integer_runner import Compiled, expected_sums, saturating_units
from measured import measured
from numpy.typing import NDArray

from byoc_mlir.calibration import Calibration, using
from byoc_mlir.kernels.integer_gemm.epilogue import IntegerEpilogue
from byoc_mlir.kernels.integer_gemm.integer_gemm import IntegerGemm
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit
from byoc_mlir.runtime.system.cpu import Cpu

_PAIRS = [IntegerUnit(4, 16, False), IntegerUnit(8, 16, False), IntegerUnit(16, 32, False)]
_VNNI = [IntegerUnit(lanes, registers, True) for lanes, registers in ((4, 16), (8, 16), (16, 32))]
_WIDE = [replace(unit[-1], panel_vectors=4) for unit in (_PAIRS, _VNNI)]
_HAS_VNNI = {"avx512_vnni", "avx512vl"} <= set(Cpu.host().features)
"""VNNI instructions, which LLVM cannot emulate, so that tests need a processor that has them."""

_BETWEEN = [replace(unit, panel_vectors=3) for unit in _PAIRS[:2]]
_WIDENED = [replace(unit, widens=True) for unit in (*_PAIRS[:2], _WIDE[0])]

UNITS = pytest.mark.parametrize(
    "unit",
    [
        *(
            *_PAIRS[:2],
            *_BETWEEN,
            _WIDE[0],
            *_WIDENED,
            *((*_VNNI[:2], _WIDE[1]) if _HAS_VNNI else ()),
        ),
        *(replace(unit, overlaps=True) for unit in saturating_units()),
        *(unit for unit in saturating_units() if unit.narrows),
    ],
    ids=lambda unit: unit.name + "_narrows" * unit.narrows,
)


def _left(it: IntegerGemm, *, saturating: bool = False) -> NDArray[np.int16]:
    """Returns operand A: unsigned 8-bit values, or values less the zero point."""
    shape = (it.images, it.lines, it.pixels, it.channels)
    low, high = (0, 256) if it.unit.takes_bytes else (-255, 256)
    generator = np.random.default_rng(0)
    if saturating:
        return generator.choice(np.array([low, high - 1], np.int16), shape)
    return generator.integers(low, high, shape, np.int16)


def _right(it: IntegerGemm, *, saturating: bool = False) -> NDArray[np.int16]:
    shape = (*it.window, it.channels, it.outputs)
    bytes_ = it.unit.takes_bytes or it.unit.widens
    low, high = (-128, 128) if bytes_ else (-255, 256)
    generator = np.random.default_rng(1)
    if saturating:
        return np.full(shape, high - 1, np.int16)
    return generator.integers(low, high, shape, np.int16)


def _start(it: IntegerGemm) -> NDArray[np.int32]:
    return np.random.default_rng(2).integers(-(10**6), 10**6, it.outputs, np.int32)


@pytest.mark.values
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


@pytest.mark.parametrize("ends", [(-128, 127), (-255, 0), (-7, 248)])
def test_weights_less_a_number(ends: tuple[int, int]) -> None:
    """Checks 8-bit weights of any zero point, with both ends of the range: the stored values are
    signed.
    """
    it = IntegerGemm.of_matrices(_PAIRS[1], 3, 18, 20, IntegerEpilogue())
    right = np.random.default_rng(6).choice(ends, (1, 1, 18, 20)).astype(np.int16)
    pairs, widened = it.forms(right)
    assert pairs == it
    assert widened.pack(right).nbytes == pairs.pack(right).nbytes // 2
    left, start = _left(it, saturating=True), _start(it)
    found = Compiled(widened)(left, right, start=start)
    np.testing.assert_array_equal(found, expected_sums(it, left, right) + start)


@pytest.mark.values
@UNITS
@pytest.mark.parametrize("dilation", [(1, 3), (2, 1)], ids=["apart", "neighbours"])
def test_windows(unit: IntegerUnit, dilation: tuple[int, int]) -> None:
    """Checks several images, tiles across their borders, strides, dilation and padded channels."""
    it = IntegerGemm(unit, 3, 12, 9, 5, 37, (3, 2), (2, 1), dilation)
    left, right, start = _left(it), _right(it), _start(it)
    found = Compiled(it)(left, right, start=start)
    np.testing.assert_array_equal(found, expected_sums(it, left, right) + start)


@pytest.mark.values
@UNITS
@pytest.mark.parametrize(
    "limits",
    [
        IntegerEpilogue("bytes", False, 100, 100, 255),
        IntegerEpilogue("bytes", False, -3, -128, 127),
        IntegerEpilogue("bytes", False, 10, 30, 200),
        IntegerEpilogue("bytes", False, -128, -128, -5),
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


@pytest.mark.values
@UNITS
@pytest.mark.parametrize(("lower", "upper"), [(0, 255), (-128, 127), (-20, 30)])
def test_numbers_of_more_than_32_bits(unit: IntegerUnit, lower: int, upper: int) -> None:
    """Checks results beyond 32 bits, and around the limits of 16 and of 32 bits."""
    it = IntegerGemm.of_matrices(unit, 7, 4, 40, IntegerEpilogue("bytes", False, 5, lower, upper))
    left, right = np.zeros((1, 1, 7, 4), np.int16), np.zeros((1, 1, 4, 40), np.int16)
    left[..., 0], right[..., 0, :] = np.arange(7), np.arange(-20, 20)
    scale = np.resize(np.array([1, 2**8, 2**13, 2**29, 2**60, 1e38], np.float32), 40)
    found = Compiled(it)(left, right, start=np.zeros(40, np.int32), scale=scale)
    numbers = (np.arange(7)[:, None] * np.arange(-20, 20)).astype(np.float64) * scale
    wanted = (numbers + 5).clip(lower, upper).astype(np.int32).astype(np.int8)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.values
@UNITS
@pytest.mark.parametrize("zero_point", [2, 3])
def test_halves_of_bytes_are_rounded_to_even(unit: IntegerUnit, zero_point: int) -> None:
    epilogue = IntegerEpilogue("bytes", False, zero_point, -128, 127)
    it = IntegerGemm.of_matrices(unit, 8, 4, 40, epilogue)
    sums = np.arange(8)[:, None] * np.arange(-20, 20)
    left, right = np.zeros((1, 1, 8, 4), np.int16), np.zeros((1, 1, 4, 40), np.int16)
    left[..., 0], right[..., 0, :] = np.arange(8), np.arange(-20, 20)
    scale, start = np.full(40, 0.5, np.float32), np.zeros(40, np.int32)
    found = Compiled(it)(left, right, start=start, scale=scale)
    np.testing.assert_array_equal(found, np.rint(sums / 2) + zero_point)


@pytest.mark.parametrize(
    ("outputs", "vectors"), [(12, 2), (16, 2), (24, 3), (40, 2), (64, 2), (72, 3), (1000, 2)]
)
def test_panels_fit_the_outputs(outputs: int, vectors: int) -> None:
    assert IntegerUnit(8, 16, False).for_outputs(outputs).panel_vectors == vectors


@pytest.mark.parametrize(("rows", "tile"), [(1, 1), (5, 5), (49, 5), (196, 6), (3136, 6)])
def test_tiles_fit_the_rows(rows: int, tile: int) -> None:
    it = IntegerGemm.of_matrices(IntegerUnit(8, 16, False), rows, 64, 16, IntegerEpilogue())
    assert [variant.rows for variant in it.variants] == [tile]


@pytest.mark.parametrize(
    ("weights", "unit", "widens"),
    [
        ((-128, 127), _VNNI[1], [False]),
        ((-3, 252), _VNNI[1], [False, True]),
        ((-128, 127), _PAIRS[1], [False, True]),
        ((-200, 200), _PAIRS[1], [False]),
    ],
)
def test_forms_that_weights_fit(
    weights: tuple[int, int], unit: IntegerUnit, widens: list[bool]
) -> None:
    it = IntegerGemm.of_matrices(unit, 8, 2, 1, IntegerEpilogue())
    found = it.forms(np.array(weights, np.int16))
    assert [one.unit.widens for one in found] == widens


def test_few_rows_read_bytes() -> None:
    """Checks that weights with few rows to multiply stay 8-bit: widening each is cheaper than
    reading twice the bytes.
    """
    read = {"products": 5e7, "transformed_bytes": 1e7, "weight_bytes": 2e7}
    it = IntegerGemm.of_matrices(_PAIRS[1], 1, 64, 16, IntegerEpilogue())
    forms = it.forms(np.zeros((1, 1, 64, 16), np.int16))
    with using(
        Calibration(
            measured(convolutions=read, integers={"products": 7e7, "bytes": 9e7, "depthwise": 1e7})
        )
    ):
        found = {
            rows: min(forms, key=lambda one: one.milliseconds(rows)).unit.widens
            for rows in (1, 12, 600)
        }
    assert found == {1: True, 12: True, 600: False}


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
        (("avx2", "avx512bw"), replace(_PAIRS[2], saturates=True)),
        (("avx2", "avx_vnni"), _VNNI[1]),
        (("avx2",), replace(_PAIRS[1], saturates=True)),
        (("sse4_1", "ssse3"), replace(_PAIRS[0], saturates=True)),
        (("sse4_1",), _PAIRS[0]),
        (("asimd",), replace(_PAIRS[0], registers=32)),
    ],
)
def test_units_of_processors(features: tuple[str, ...], unit: IntegerUnit) -> None:
    assert IntegerUnit.of(features) == unit
