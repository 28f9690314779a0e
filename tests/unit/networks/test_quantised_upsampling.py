"""Quantised transposed convolutions that enlarge images: computed as convolutions of pixels."""

from __future__ import annotations

import math

import pytest
from onnx import ModelProto
from onnxruntime.quantization import QuantFormat
from quantised_networks import output_step, run_as_written, static, steps_between

import byoc_mlir
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import random_inputs


def _decoder(*window: int) -> ModelProto:
    """Returns a chain of two transposed convolutions that enlarge an image by a window, one with a
    relu after it.
    """
    b = GraphBuilder("decoder", seed=4)
    rank = len(window)
    x, sizes = b.input("x", [2, 6, *[5, 7][:rank]]), [5, 7][:rank]
    for outputs in (4, 3):
        weight = b.normal((b.channels[x], outputs, *window), 0.3)
        bias = b.normal((outputs,), 0.2, "bias")
        x = b.op("ConvTranspose", x, weight, bias, strides=list(window))
        x = b.relu(x) if outputs == 4 else x
        b.channels[x] = outputs
        sizes = [size * stride for size, stride in zip(sizes, window, strict=True)]
    b.output(x, "y", [2, 3, *sizes])
    return b.build()


@pytest.mark.values
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("window", [(2, 2), (1, 3), (2,)])
def test_a_decoder(window: tuple[int, ...], per_channel: bool) -> None:
    model = static(_decoder(*window), QuantFormat.QDQ, per_channel=per_channel)
    inputs = random_inputs(model, seed=3)
    with byoc_mlir.compile(model, threads=1, fallback="allow") as executable:
        found = executable.run(inputs)["y"]
        products = executable.report().multiplications
    steps = steps_between(found, run_as_written(model, inputs), output_step(model))
    assert steps.max() <= 1
    assert (steps > 0).sum() <= math.ceil(steps.size / 1000)
    assert set(products) == {"int8"}
