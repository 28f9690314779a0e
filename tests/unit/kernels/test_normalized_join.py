"""Concatenations fused with batch norm, for vectors of every length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernel_runner import Native, aligned
from numpy.typing import NDArray
from xdsl.dialects.builtin import BFloat16Type, Float32Type, bf16, f32

from byoc_mlir.kernels.convolution import Slot
from byoc_mlir.kernels.normalization import JoinedTensor, NormalizedJoin, fitting_lanes
from byoc_mlir.runtime.system.cpu import Cpu

Array = NDArray[Any]

LANES = pytest.mark.parametrize("lanes", [4, 8, 16, 32])
_ROUNDS = pytest.mark.skipif(
    "avx512_bf16" not in Cpu.host().features, reason="LLVM calls a function to round there"
)
ELEMENTS = pytest.mark.parametrize("element", [f32, pytest.param(bf16, marks=_ROUNDS)], ids=str)
_NUMPY = {f32: np.dtype(np.float32), bf16: np.dtype(ml_dtypes.bfloat16)}


def _stored(array: Array, block: int) -> Array:
    """Returns an array `[channels, pixels]` in a blocked layout."""
    channels, pixels = array.shape
    return np.ascontiguousarray(array.reshape(channels // block, block, pixels).swapaxes(1, 2))


def _run(join: NormalizedJoin, parts: Sequence[Array], factors: Array) -> Array:
    """Returns the result `[channels, pixels]`; its memory is NaN before."""
    kind = _NUMPY[join.element]
    result = aligned((join.channels * join.pixels,)).astype(kind)
    stored = [_stored(a, part.block) for a, part in zip(parts, join.parts, strict=True)]
    held = dict(zip(join.slots, (factors, *stored), strict=True))
    Native(join.code()).run({**held, Slot.RESULT: result})
    blocks = result.reshape(join.channels // join.block, join.pixels, join.block)
    return blocks.swapaxes(1, 2).reshape(join.channels, join.pixels)


def _check(
    channels: Sequence[int],
    pixels: int,
    blocks: Sequence[int],
    block: int,
    element: Float32Type | BFloat16Type,
    *,
    lanes: int,
    relu: bool,
) -> None:
    rng = np.random.default_rng(0)
    kind = _NUMPY[element]
    parts = [rng.standard_normal((one, pixels)).astype(kind) for one in channels]
    parts[0][1, :4] = np.array([np.nan, np.inf, -np.inf, 0], kind)
    factors = rng.standard_normal((2, sum(channels)), dtype=np.float32)
    given = tuple(JoinedTensor(*each) for each in zip(channels, blocks, strict=True))
    join = NormalizedJoin(given, pixels, block or sum(channels), element, relu, lanes)
    joined = np.concatenate(parts).astype(np.float64)
    wanted = joined * factors[0, :, None] + factors[1, :, None]
    wanted = np.maximum(wanted, 0) if relu else wanted
    found = _run(join, parts, factors).astype(np.float64)
    step = 1e-6 if element == f32 else 2.0**-8
    np.testing.assert_allclose(found, wanted, rtol=step, atol=4e-6)


@pytest.mark.pairs
@LANES
@ELEMENTS
@pytest.mark.parametrize("relu", [False, True])
def test_channels_last(lanes: int, element: Float32Type | BFloat16Type, relu: bool) -> None:
    """Checks parts of one, two and three vectors, with two whole chunks of pixels and a rest."""
    channels = [lanes, 3 * lanes, 2 * lanes]
    _check(channels, 101, channels, 0, element, lanes=lanes, relu=relu)


@LANES
@ELEMENTS
def test_blocks_of_channels(lanes: int, element: Float32Type | BFloat16Type) -> None:
    channels, block = [4 * lanes, 2 * lanes], 2 * lanes
    _check(channels, 53, [block] * 2, block, element, lanes=lanes, relu=True)


@LANES
def test_blocks_are_joined_with_channels_last(lanes: int) -> None:
    _check([2 * lanes, lanes], 7, [lanes, lanes], 0, f32, lanes=lanes, relu=False)


@pytest.mark.parametrize(
    ("blocks", "most", "lanes"),
    [([64, 32], 16, 16), ([64, 24], 16, 8), ([12, 64], 8, 4), ([6, 64], 16, None)],
)
def test_vectors_fit_all_parts(blocks: list[int], most: int, lanes: int | None) -> None:
    assert fitting_lanes(blocks, most) == lanes
