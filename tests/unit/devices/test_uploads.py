"""Weights on a device: uploaded once per process and digest, and freed with the last user."""

from __future__ import annotations

import numpy as np
from device_models import (
    SIZE,
    checked_run,
    compiled,
    nothing_left,
    weight_in_two_regions,
)
from fakenpu.control import Control

WEIGHT_BYTES = 4 * SIZE * SIZE


def test_regions_share_a_weight() -> None:
    control = Control("fakenpu")
    with nothing_left():
        before = control.counters()
        with compiled(weight_in_two_regions(), "fakenpu") as executable:
            assert control.counters().since(before).bytes_in == WEIGHT_BYTES
            checked_run(executable, weight_in_two_regions())


def test_executables_share_a_weight() -> None:
    model, control = weight_in_two_regions(), Control("fakenpu")
    with nothing_left(), compiled(model, "fakenpu") as first:
        before = control.counters()
        with compiled(model, "fakenpu") as second:
            checked_run(first, model)
            checked_run(second, model)
        checked_run(first, model)
        activations = 4 * 4 * SIZE
        assert control.counters().since(before).bytes_in == 3 * 2 * activations


def test_an_executable_may_outlive_the_one_that_uploaded() -> None:
    model = weight_in_two_regions()
    with nothing_left():
        first = compiled(model, "fakenpu")
        with compiled(model, "fakenpu") as second:
            first.close()
            checked_run(second, model)


def test_batch_sizes_share_a_weight() -> None:
    model, control = weight_in_two_regions("batch"), Control("fakenpu")
    rows = 0
    with nothing_left():
        before = control.counters()
        with compiled(model, "fakenpu") as executable:
            for batch in (1, 2, 5):
                executable.run({"x": np.ones((batch, SIZE), np.float32)})
                rows += batch
        uploaded = control.counters().since(before).bytes_in - 2 * rows * 4 * SIZE
    assert uploaded == WEIGHT_BYTES
