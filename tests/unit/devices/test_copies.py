"""Copies between host and device: each value crosses at most once in each direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from device_models import (
    FIRST,
    copies_of_a_run,
    host_between,
    host_between_and_direct,
    nothing_left,
    reshape_between,
    two_backends,
    two_hosts_between,
)
from onnx import ModelProto

from byoc_mlir.testing.networks import mlp3, mnist, resnet18

SECOND = ("fakenpu2",)

CASES: Sequence[tuple[Callable[[], ModelProto], Sequence[str], tuple[int, int]]] = [
    (mlp3, ("fakenpu",), (1, 1)),
    (mnist, ("fakenpu_no_pools",), (3, 3)),
    (mnist, ("fakenpu",), (1, 1)),
    (lambda: resnet18(image=32), FIRST, (1, 1)),
    (lambda: resnet18(image=32), SECOND, (1, 1)),
    (host_between, FIRST, (2, 2)),
    (host_between_and_direct, FIRST, (2, 2)),
    (host_between_and_direct, SECOND, (2, 2)),
    (two_hosts_between, FIRST, (3, 3)),
    (two_hosts_between, SECOND, (3, 3)),
    (reshape_between, FIRST, (1, 1)),
    (reshape_between, SECOND, (1, 1)),
    (two_backends, FIRST, (1, 1)),
]


@pytest.mark.parametrize(("build", "targets", "least"), CASES)
def test_copies_are_the_least_possible(
    build: Callable[[], ModelProto], targets: Sequence[str], least: tuple[int, int]
) -> None:
    device = "fakenpu2" if targets == SECOND else "fakenpu"
    with nothing_left():
        assert copies_of_a_run(build(), *targets, device=device) == least


def test_values_between_two_devices_pass_through_the_host() -> None:
    targets = ("fakenpu_eltwise", "fakenpu2")
    assert copies_of_a_run(two_backends(), *targets, device="fakenpu2") == (2, 2)
    assert copies_of_a_run(two_backends(), *targets, device="fakenpu") == (1, 1)
