"""Convolutions of `bf16` by code of our own, asked for here wherever it is written."""

from __future__ import annotations

import numpy as np
import pytest
from bf16_models import assert_close

import byoc_mlir
from byoc_mlir.backends.dnnl.api import api
from byoc_mlir.testing.isa import call_at
from byoc_mlir.testing.networks.builder import GraphBuilder
from byoc_mlir.testing.reference import random_inputs, run_onnxruntime

_TARGET = "dnnl{winograd=off convolution=depthwise layout=channels_last}"


def check_channels_apart(number: str = "") -> None:
    """Windows of 3 and 5 pixels, strides, no bias, limits; a number that is not finite."""
    net = GraphBuilder("net", seed=0)
    x = net.relu6(net.conv(net.input("x", [2, 3, 23, 25]), 40, 1))
    x = net.relu6(net.conv(x, 40, 3, groups=40))
    x = net.relu(net.conv(x, 40, 5, stride=2, groups=40))
    x = net.conv(x, 40, 3, groups=40, bias=False)
    net.output(net.conv(x, 16, 1), "y", [2, 16, 12, 13])
    model = net.build()
    inputs = random_inputs(model)
    if number:
        inputs["x"][1, 2, 3, 4] = float(number)
    with byoc_mlir.compile(model, (_TARGET,), 2, "bf16", prune="off") as executable:
        found, rows = executable.run(inputs), executable.report()
    if api().has_bf16:
        assert [row.implementation for row in rows].count("depthwise") >= 3, rows
    wanted = run_onnxruntime(model, inputs)
    if not number:
        assert_close(found, wanted)
        return
    np.testing.assert_array_equal(np.isnan(found["y"]), np.isnan(wanted["y"]))
    is_number = ~np.isnan(wanted["y"])
    assert_close({"y": found["y"][is_number]}, {"y": wanted["y"][is_number]})


def check_swish(activation: str) -> None:
    """Behind convolutions of all channels and of channels apart, in the convolution or after it."""
    net = GraphBuilder("net", seed=0)
    x = net.conv(net.input("x", [1, 8, 17, 19]), 48, 1)
    for groups in (48, 1, 48):
        x = net.op("Mul", x, net.op("Sigmoid", x))
        net.channels[x] = 48
        x = net.conv(x, 48, 3, groups=groups)
    net.output(x, "y", [1, 48, 17, 19])
    model = net.build()
    inputs = random_inputs(model)
    target = f"dnnl{{winograd=off layout=channels_last activation={activation}}}"
    with byoc_mlir.compile(model, (target,), 1, "bf16", prune="off") as executable:
        assert_close(executable.run(inputs), run_onnxruntime(model, inputs))
        report = str(executable.report())
    assert ("loop:swish" in report) == (activation == "loop")


@pytest.mark.parametrize("activation", ["loop", "post_op"])
@pytest.mark.parametrize("level", ["avx2", "avx512_bf16", "amx"])
def test_swish(level: str, activation: str) -> None:
    call_at(level, check_swish, activation)


@pytest.mark.parametrize("level", ["avx2", "avx512_bf16", "amx"])
def test_channels_apart(level: str) -> None:
    call_at(level, check_channels_apart)


def test_numbers_that_are_not_finite_go_through_channels_apart() -> None:
    check_channels_apart("nan")
