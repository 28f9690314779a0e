"""Int8 convolutions as one function, with padding, odd channels and residuals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest
from integer_runner import expected_sums, saturating_units
from kernel_runner import Native, aligned, convolution
from measured import measured
from numpy.typing import NDArray

from byoc_mlir.calibration import Calibration, using
from byoc_mlir.kernels.convolution import Slot
from byoc_mlir.kernels.integer_gemm.convolution import IntegerConvolution
from byoc_mlir.kernels.integer_gemm.depthwise import DepthwiseOfBytes
from byoc_mlir.kernels.integer_gemm.epilogue import ByteResidual, IntegerEpilogue
from byoc_mlir.kernels.integer_gemm.integer_gemm import IntegerGemm
from byoc_mlir.kernels.integer_gemm.through_floats import ThroughFloats
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.kernels.winograd.winograd import winograd_kernels

Kernel: TypeAlias = "IntegerConvolution | DepthwiseOfBytes | ThroughFloats"

_PAIRS = [
    *(IntegerUnit(4, 16, False), IntegerUnit(8, 16, False)),
    *(IntegerUnit(8, 16, False, 3), IntegerUnit(16, 32, False, 4)),
]
_OVERLAPPING = [replace(unit, overlaps=True) for unit in saturating_units()]
_NARROWING = [unit for unit in saturating_units() if unit.narrows]


def _name(unit: IntegerUnit) -> str:
    return unit.name + "_narrows" * unit.narrows


PAIRS = pytest.mark.parametrize("unit", [*_PAIRS, *_NARROWING[:1]], ids=_name)
UNITS = pytest.mark.parametrize("unit", [*_PAIRS, *_OVERLAPPING, *_NARROWING], ids=_name)
_BYTES = IntegerEpilogue("bytes", True, 3, -128, 127)
_PADDED = IntegerConvolution(
    *(IntegerUnit(8, 16, False), (2, 7, 6, 5), True, -11, 37),
    *((3, 2), (2, 1), (1, 2), (1, 0), (2, 3), _BYTES),
)
_FLAT = IntegerConvolution(
    *(IntegerUnit(8, 16, False), (1, 5, 7, 18), False, 130, 32),
    *((1, 1), (1, 1), (1, 1), (0, 0), (0, 0)),
    IntegerEpilogue("bytes", True, 100, 100, 255),
)
_GROUPED = IntegerConvolution(
    *(IntegerUnit(8, 16, False), (2, 7, 9, 12), True, -11, 60),
    *((3, 2), (2, 1), (1, 1), (1, 0), (2, 3), _BYTES, 3),
)
_COLOURS = IntegerConvolution(
    *(IntegerUnit(8, 16, False), (2, 9, 11, 3), False, 7, 21),
    *((3, 5), (2, 1), (2, 1), (1, 2), (0, 1), _BYTES),
)
"""Convolution of colours: rows of the window are padded to groups, and neighbours begin within one.
"""
_WINDOWS = IntegerConvolution(
    *(IntegerUnit(8, 16, False), (2, 7, 9, 16), True, -11, 24),
    *((3, 3), (1, 1), (1, 1), (1, 1), (1, 1), _BYTES),
)
_RESIDUAL = ByteResidual(True, -150.0, 90.5, 0.75, -2.25)


def _run(
    it: Kernel,
    source: NDArray[np.generic],
    packed: NDArray[np.int32] | NDArray[np.float32],
    residual: NDArray[np.generic] | None,
    size: int,
) -> NDArray[np.int8]:
    result = np.full(size + 64, 77, np.int8)
    held: dict[int, NDArray[Any]] = {
        Slot.WORKSPACE: aligned((it.workspace_bytes(1) // 4 + 1,)),
        Slot.WEIGHTS: packed,
        Slot.SOURCE: source,
        Slot.RESULT: result,
        **({} if residual is None else {Slot.RESIDUAL: residual}),
    }
    Native(it.code(1)).run(held)
    assert (result[size:] == 77).all()
    return result[:size]


_CASES = {"padded": _PADDED, "flat": _FLAT, "groups": _GROUPED, "colours": _COLOURS}


_RESIDUALS = {
    "alone": None,
    "signed": _RESIDUAL,
    "unsigned": replace(_RESIDUAL, is_signed=False),
}


@pytest.mark.values
@UNITS
@pytest.mark.parametrize("case", _CASES.values(), ids=_CASES)
@pytest.mark.parametrize("residual", _RESIDUALS.values(), ids=_RESIDUALS)
def test_against_the_definition(
    unit: IntegerUnit, case: IntegerConvolution, residual: ByteResidual | None
) -> None:
    it = replace(case, unit=unit, epilogue=replace(case.epilogue, residual=residual))
    found, wanted = _found_and_wanted(it, it)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.values
@PAIRS
@pytest.mark.parametrize("window", [(3, 3), (5, 2)])
@pytest.mark.parametrize("residual", [None, _RESIDUAL])
def test_depthwise(
    unit: IntegerUnit, window: tuple[int, int], residual: ByteResidual | None
) -> None:
    channels, epilogue = 2 * 2 * unit.lanes, replace(_BYTES, residual=residual)
    shape, windows = (2, 7, 9, channels), (window, (2, 1), (1, 2), (1, 0), (2, 3))
    case = IntegerConvolution(unit, shape, True, -11, channels, *windows, epilogue, channels)
    own = DepthwiseOfBytes(unit, shape, True, -11, *windows, epilogue)
    found, wanted = _found_and_wanted(case, own)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.values
@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("residual", [None, _RESIDUAL, replace(_RESIDUAL, is_signed=False)])
def test_through_floats(lanes: int, size: int, residual: ByteResidual | None) -> None:
    """Checks int8 convolutions via f32; elements close to a tie may be a step apart."""
    window = (size, size)
    it = replace(_WINDOWS, window=window, epilogue=replace(_BYTES, residual=residual))
    floats = convolution((2, 16, 7, 9), 24, window, pads=(1, 1, 1, 1))
    for kernel in winograd_kernels(floats, VectorUnit(lanes, 16)):
        own = ThroughFloats(kernel, it.is_signed, it.zero_point, it.epilogue)
        found, wanted = _found_and_wanted(it, own)
        apart = np.abs(found.astype(np.int16) - wanted)
        assert apart.max() <= 1
        assert (apart > 0).mean() < 1e-3


def _found_and_wanted(
    it: IntegerConvolution, own: Kernel
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Returns a kernel's result for random 8-bit data, and the result by definition."""
    generator, residual = np.random.default_rng(0), it.epilogue.residual
    source = generator.integers(0, 256, it.shape).astype(np.uint8)
    source = source.view(np.int8 if it.is_signed else np.uint8)
    inner = it.shape[3] // it.groups
    weights = generator.integers(-128, 128, (it.outputs, inner, *it.window)).astype(np.int8)
    scales = generator.uniform(1e-4, 1e-3, it.outputs).astype(np.float32)
    offsets = generator.uniform(-20, 20, it.outputs).astype(np.float32)
    (top, left), (bottom, right) = it.begins, it.ends
    pads = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(source.astype(np.int16) - it.zero_point, pads)
    images, lines, pixels, channels = padded.shape
    gemm = IntegerGemm(
        *(it.unit, images, lines, pixels, channels // it.groups, it.outputs // it.groups),
        *(it.window, it.strides, it.dilation),
    )
    groups = zip(
        np.split(padded, it.groups, -1),
        np.split(weights.transpose(2, 3, 1, 0), it.groups, -1),
        strict=True,
    )
    sums = np.concatenate([expected_sums(gemm, *group) for group in groups], -1)
    numbers = sums.astype(np.float32) * scales + offsets
    added = None
    if residual is not None:
        added = generator.integers(0, 256, numbers.shape).astype(np.uint8)
        added = added.view(np.int8 if residual.is_signed else np.uint8)
        limited = numbers.clip(residual.lower, residual.upper) + added.astype(np.float32)
        numbers = limited * np.float32(residual.factor) + np.float32(residual.shift)
    epilogue = it.epilogue
    wanted = np.rint(numbers) + np.float32(epilogue.zero_point)
    wanted = wanted.clip(epilogue.lower, epilogue.upper).astype(np.int32).astype(np.int8)
    found = _run(own, source, own.pack(weights, scales, offsets), added, wanted.size)
    return found.reshape(wanted.shape), wanted


@pytest.mark.parametrize(
    ("saturates", "weight", "words"),
    [(True, 64, "overlapping"), (True, -128, "pairs"), (False, 64, "pairs")],
)
def test_words_that_overlap_too_often(saturates: bool, weight: int, words: str) -> None:
    """Checks weights so large that packing without saturation takes twice as many groups."""
    it = replace(_WINDOWS, unit=IntegerUnit(8, 16, False, saturates=saturates))
    weights = np.full((it.outputs, it.shape[3], *it.window), weight, np.int8)
    known = {"products": 8e7, "transformed_bytes": 1e7, "weight_bytes": 2e7}
    with using(
        Calibration(
            measured(convolutions=known, integers={"products": 8e7, "bytes": 1e8, "depthwise": 1e7})
        )
    ):
        fastest = min(it.forms(weights), key=lambda one: one.milliseconds(1))
    assert fastest.unit.words == words


def test_what_is_copied_counts() -> None:
    """Checks that copies count: pairs are widened from bytes before they are multiplied, and bytes
    are not.
    """
    it = replace(_FLAT, unit=IntegerUnit(8, 16, False, saturates=True))
    weights = np.ones((it.outputs, it.shape[3], *it.window), np.int8)
    known = {"products": 8e7, "transformed_bytes": 1e7, "weight_bytes": 2e7}
    integers = {"products": 8e7, "bytes": 7.5e7, "depthwise": 1e7}
    with using(Calibration(measured(convolutions=known, integers=integers))):
        fastest = min(it.forms(weights), key=lambda one: one.milliseconds(1))
    assert fastest.unit.words == "overlapping"
