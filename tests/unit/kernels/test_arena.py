"""Sizes of an arena whose buffers have symbolic sizes."""

from __future__ import annotations

from byoc_mlir.dims import evaluated, floordiv, symbol
from byoc_mlir.kernels.arena import DynamicRequest, plan_slots

BATCH, HEIGHT = symbol("batch"), symbol("height")


def test_a_slot_names_one_of_proportional_sizes() -> None:
    rows = floordiv(HEIGHT + 5, 8) - 3
    sizes = [channels * BATCH * rows for channels in range(64, 64 * 500, 64)]
    offsets, total = plan_slots([DynamicRequest(size, 1, n, n) for n, size in enumerate(sizes)])
    assert total == sizes[-1]
    assert set(offsets) == {0}


def test_a_slot_is_as_large_as_each_of_its_buffers() -> None:
    sizes = [64 * BATCH * HEIGHT, 128 * BATCH, 640, 64 * BATCH, 320, 192 * BATCH - 64, 0]
    _, total = plan_slots([DynamicRequest(size, 1, n, n) for n, size in enumerate(sizes)])
    for batch in (1, 2, 40):
        for height in (1, 9):
            values = {"batch": batch, "height": height}
            assert evaluated(total, values) == max(evaluated(size, values) for size in sizes)
