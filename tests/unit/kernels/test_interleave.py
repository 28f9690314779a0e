"""Conversion of `f32` planes to NHWC in `bf16`."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import Native
from ml_dtypes import bfloat16

from byoc_mlir.kernels.convolution import Slot
from byoc_mlir.kernels.interleave import interleave_code
from byoc_mlir.runtime.system.cpu import Cpu


@pytest.mark.skipif(
    "avx512_bf16" not in Cpu.host().features, reason="code for processors that round to bf16"
)
@pytest.mark.parametrize(
    ("images", "channels", "pixels"), [(1, 3, 16), (2, 3, 61), (3, 2, 33), (2, 4, 48)]
)
def test_planes(images: int, channels: int, pixels: int) -> None:
    """Checks rounding to the nearest, ties to even; NaN and infinities stay; the last block
    overlaps.
    """
    planes = np.random.default_rng(0).standard_normal((images, channels, pixels), np.float32)
    planes[:, 0, :5] = 1 + 2.0**-8, 1 + 3 * 2.0**-8, np.nan, np.inf, -0.0
    code = interleave_code(images, channels, pixels)
    assert code is not None
    found = np.full((images, pixels, channels), np.nan, bfloat16)
    Native(code).run({Slot.SOURCE: planes, Slot.RESULT: found})
    wanted = planes.transpose(0, 2, 1).astype(bfloat16)
    np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))
    assert np.signbit(found[:, 4, 0].astype(np.float32)).all()


@pytest.mark.parametrize(("channels", "pixels"), [(1, 64), (5, 64), (3, 15)])
def test_what_is_not_written(channels: int, pixels: int) -> None:
    assert interleave_code(1, channels, pixels) is None
