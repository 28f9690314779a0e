"""Copies, bytes and waits in reports and profiles."""

from __future__ import annotations

import json

import pytest
from device_models import (
    FIRST,
    SIZE,
    checked_run,
    compiled,
    host_between,
    reshape_between,
    two_backends,
)
from fakenpu.control import Control

import byoc_mlir
from byoc_mlir.runtime.profiled import ENQUEUED
from byoc_mlir.testing.networks import GraphBuilder, mlp3
from byoc_mlir.testing.reference import random_inputs


@pytest.mark.parametrize(
    ("targets", "device"), [(FIRST, "fakenpu"), (("fakenpu_eltwise", "fakenpu2"), "fakenpu2")]
)
def test_the_report_counts_what_a_run_does(targets: tuple[str, ...], device: str) -> None:
    model, control = two_backends(), Control(device)
    with compiled(model, *targets) as executable:
        report = executable.report()
        (found,) = (one for one in report.devices if one.device == device)
        before = control.counters()
        checked_run(executable, model)
        counted = control.counters().since(before)
    assert (found.copies_in, found.bytes_in) == (counted.copies_in, counted.bytes_in)
    assert (found.copies_out, found.bytes_out) == (counted.copies_out, counted.bytes_out)
    assert found.waits == counted.waits
    assert {"device": device, "copies_in": found.copies_in}.items() <= json.loads(report.to_json())[
        "devices"
    ][[one.device for one in report.devices].index(device)].items()


def test_the_report_says_it_in_a_line() -> None:
    with compiled(mlp3(), "fakenpu") as executable:
        report = executable.report()
        (found,) = report.devices
        (held,) = executable.program.devices
    assert found.constant_bytes == held.constant_bytes > 0
    line = (
        f"fakenpu: 1 copy in ({found.bytes_in:,} bytes), 1 copy out ({found.bytes_out:,} bytes),"
        f" 1 wait; {found.constant_bytes:,} bytes of constants"
    )
    assert line in str(report).splitlines()
    assert line.replace("&", "&amp;") in report.to_html()


def test_a_view_of_a_value_on_a_device_is_no_work_of_the_host() -> None:
    with byoc_mlir.compile(reshape_between(), targets=FIRST, fallback="forbid") as executable:
        (row,) = (row for row in executable.report() if row.op_type == "Reshape")
        checked_run(executable, reshape_between())
    assert (row.placement, row.reason) == ("removed", "a view of a value on device 'fakenpu'")


def test_a_reshaped_input_is_a_view_where_only_a_device_uses_it() -> None:
    b = GraphBuilder("flat", seed=3)
    x = b.input("x", [2, 4, SIZE])
    b.output(b.gemm(b.reshape(x, 8, SIZE), SIZE), "out", [8, SIZE])
    model = b.build()
    with byoc_mlir.compile(model, targets=FIRST, fallback="forbid") as executable:
        checked_run(executable, model)


def test_a_reshape_of_the_host_stays_there() -> None:
    b = GraphBuilder("mixed", seed=3)
    x = b.input("x", [2, 4, SIZE])
    flat = b.reshape(b.op("Softmax", x, axis=-1), 8, SIZE)
    b.output(b.op("Softmax", flat, axis=-1), "host", [8, SIZE])
    b.output(b.gemm(flat, SIZE), "out", [8, SIZE])
    with compiled(b.build(), *FIRST) as executable:
        (row,) = (row for row in executable.report() if row.op_type == "Reshape")
    assert row.placement == "host"


def test_a_model_without_devices_has_no_such_line() -> None:
    with compiled(mlp3()) as executable:
        assert executable.report().devices == ()


def test_a_profile_has_steps_for_copies_waits_and_regions() -> None:
    model = host_between()
    with compiled(model, *FIRST, profile=True) as executable:
        rows = [row for row in executable.profile(random_inputs(model)) if row.device]
        report = executable.report()
    copies = [row for row in rows if row.implementation.startswith("copy")]
    assert {row.implementation for row in rows} == {
        "copy to fakenpu",
        "copy from fakenpu",
        "wait for fakenpu",
        ENQUEUED,
    }
    (traffic,) = report.devices
    waits = [row for row in rows if row.implementation == "wait for fakenpu"]
    assert len(waits) == traffic.waits
    assert sum(row.bytes for row in copies) == traffic.bytes_in + traffic.bytes_out
    regions = [row for row in rows if row.implementation == ENQUEUED]
    assert {row.backend for row in regions} == {"fakenpu"}
    assert all(row.nodes and not row.multiplications for row in regions)
