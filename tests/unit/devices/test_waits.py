"""Waits: the host works while a device does, and reads nothing before it is there."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from device_models import (
    FIRST,
    HOST_MILLISECONDS,
    checked_run,
    compiled,
    host_between_and_direct,
    nothing_left,
    two_branches,
    two_hosts_between,
)
from fakenpu.control import Control, EventKind
from onnx import ModelProto, parser

from byoc_mlir.testing.forked import run_forked
from byoc_mlir.testing.networks import GraphBuilder, mlp3

NANOSECONDS = 1_000_000


def test_the_host_works_while_the_device_does() -> None:
    """Checks that all work of the device is enqueued before the host begins, which then waits."""
    model, control = two_branches(), Control("fakenpu")
    with compiled(model, "fakenpu", "slow_host") as executable:
        checked_run(executable, model)
        control.events()
        with control.delays(kernel=30):
            checked_run(executable, model)
        events = control.events()
    tasks = [event for event in events if event.kind is not EventKind.WAIT]
    waits = [event for event in events if event.kind is EventKind.WAIT]
    assert {event.kind for event in tasks} == {
        EventKind.COPY_IN,
        EventKind.LAUNCH,
        EventKind.COPY_OUT,
    }
    enqueued = max(event.enqueued for event in tasks)
    assert min(event.begin for event in waits) - enqueued >= HOST_MILLISECONDS * NANOSECONDS


def test_a_run_waits_once_where_once_is_enough() -> None:
    model, control = mlp3(), Control("fakenpu")
    with compiled(model, "fakenpu") as executable:
        checked_run(executable, model)
        before = control.counters()
        checked_run(executable, model)
        assert control.counters().since(before).waits == 1


@pytest.mark.values
@pytest.mark.parametrize("build", [mlp3, two_branches, host_between_and_direct, two_hosts_between])
@pytest.mark.parametrize("targets", [FIRST, ("fakenpu2",), ("fakenpu_eltwise", "fakenpu2")])
def test_a_queue_that_starts_late_changes_nothing(
    build: Callable[[], ModelProto], targets: Sequence[str]
) -> None:
    model = build()
    with (
        nothing_left(),
        Control("fakenpu").lazy(),
        Control("fakenpu2").lazy(),
        compiled(model, *targets) as executable,
    ):
        for seed in range(3):
            checked_run(executable, model, seed=seed)


IN_PLACE = """
    <ir_version: 10, opset_import: ["" : 24]>
    g (float[2, 8, 4] cache, float[2, 1, 4] update, int64[2] places)
      => (float[2, 8, 4] y, float[2, 8, 4] z) {
      z = Tanh(cache)
      y = TensorScatter(cache, update, places)
    }
"""


def test_an_output_in_place_of_an_input_that_the_device_reads() -> None:
    cache = np.zeros((2, 8, 4), np.float32)
    inputs = {
        "cache": cache,
        "update": np.ones((2, 1, 4), np.float32),
        "places": np.array([1, 2], np.int64),
    }
    with (
        compiled(parser.parse_model(IN_PLACE), "fakenpu_eltwise") as executable,
        Control("fakenpu").lazy(),
    ):
        assert executable.program.aliases == {"y": "cache"}
        found = executable.run(inputs, out={"y": cache})
    assert not found["z"].any()
    assert found["y"].sum() == 8


def test_the_workspace_of_a_host_region_is_not_where_a_device_reads() -> None:
    b = GraphBuilder("workspace", seed=1)
    b.output(b.op("Tanh", b.op("Softmax", b.input("x", [4, 16]), axis=-1)), "small", [4, 16])
    y = b.input("image", [1, 8, 16, 16])
    for _ in range(3):
        y = b.relu(b.conv(y, 8, 3))
    b.output(y, "large", [1, 8, 16, 16])
    model = b.build()
    with compiled(model, "fakenpu_eltwise", "dnnl") as executable, Control("fakenpu").lazy():
        checked_run(executable, model)


WITHOUT_WAITS = """
import os
import numpy as np
from fakenpu.control import Control
from byoc_mlir.lowering.place_waits import PlaceWaits
from byoc_mlir.testing.networks import mlp3
from byoc_mlir.testing.reference import random_inputs
import byoc_mlir
PlaceWaits.apply = lambda *_: None
model = mlp3()
executable = byoc_mlir.compile(model, targets=("fakenpu",))
with Control("fakenpu").lazy():
    (output,) = executable.run(random_inputs(model)).values()
print(np.isnan(output).all(), flush=True)
os._exit(0)  # the device may still write to the output
"""


def test_a_missing_wait_is_a_wrong_number() -> None:
    assert run_forked(WITHOUT_WAITS).split() == ["True"]


STRAY = """
import device_models
from byoc_mlir.backends import CSource
from fakenpu.c_backend import FakeNpuBackend
from byoc_mlir.testing.networks import mlp3
from byoc_mlir.testing.reference import random_inputs
import byoc_mlir

def on_the_host(self, region, context):
    name = region.sym_name.data
    return CSource(
        f"int {name}(void *queue, const float *const0, const float *const1, const float *in0,"
        " float *out0) { out0[0] = in0[0]; return 0; }"
    )

FakeNpuBackend.codegen_regions = lambda self, regions, context: [
    on_the_host(self, region, context) for region in regions
]
model = mlp3()
executable = device_models.compiled(model, "fakenpu")
print("loaded", flush=True)
executable.run(random_inputs(model))
print("survived")
"""


def test_a_region_that_computes_on_the_host_crashes() -> None:
    with pytest.raises(AssertionError, match=rf"status -{int(signal.SIGSEGV)}") as caught:
        run_forked(STRAY)
    assert "\nloaded\n" in str(caught.value)
    assert "\nsurvived\n" not in str(caught.value)
