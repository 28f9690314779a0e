"""Ops with dynamic shapes: one program serves all sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from dynamic_models import check_one_program, compiled
from helpers.programs import fixed_programs, generic_programs
from onnx import ModelProto, TensorProto

import byoc_mlir
from byoc_mlir.testing.networks import GraphBuilder

Built = Callable[[GraphBuilder, str], str]

_IMAGES = [dict(zip("nhw", sizes, strict=True)) for sizes in [(2, 6, 8), (1, 10, 6), (3, 4, 20)]]


def image_model(build: Built, opset: int = 17) -> ModelProto:
    b = GraphBuilder("image", seed=0, opset=opset)
    x = b.input("x", ["n", 4, "h", "w"])
    b.channels[x] = 4
    b.output(build(b, x), "y", [None] * 4)
    return b.build()


def _unpooled(b: GraphBuilder, x: str) -> str:
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    pooled, places = b.ops("MaxPool", x, outputs=2, **window)
    return b.op("MaxUnpool", pooled, places, **window)


def _padded_by_a_sum(b: GraphBuilder, x: str) -> str:
    number = b.op("ReduceSum", x, keepdims=0)
    return b.op("Pad", x, b.ints(0, 0, 1, 2, 0, 0, 3, 4), number)


def _without_dropout(b: GraphBuilder, x: str) -> str:
    _, mask = b.ops("Dropout", x, outputs=2)
    return b.op("Where", mask, x, b.scalar(7.0))


def _never_infinite(b: GraphBuilder, x: str) -> str:
    found = b.op("IsInf", x, detect_negative=0, detect_positive=0)
    return b.op("Where", found, b.scalar(7.0), x)


_NETWORKS: dict[str, Built] = {
    "MaxUnpool": _unpooled,
    "Pad": _padded_by_a_sum,
    "Dropout": _without_dropout,
    "IsInf": _never_infinite,
    "DepthToSpace": lambda b, x: b.op("DepthToSpace", x, blocksize=2),
    "SpaceToDepth": lambda b, x: b.op(
        "SpaceToDepth",
        b.op("Resize", x, "", b.constant(np.array([1, 1, 2, 2], np.float32))),
        blocksize=2,
    ),
}


@pytest.mark.parametrize("op", _NETWORKS)
def test_images(op: str) -> None:
    check_one_program(image_model(_NETWORKS[op]), _IMAGES)


@pytest.mark.parametrize("has_window", [False, True])
def test_frames_of_signals_of_any_length(has_window: bool) -> None:
    b = GraphBuilder("signal", seed=0)
    x = b.input("x", ["n", "samples"])
    more = ["", b.constant(np.int64(16))]
    if has_window:
        more = [b.constant(np.hanning(16).astype(np.float32))]
    signal = b.op("Unsqueeze", x, b.ints(2))
    b.output(b.op("STFT", signal, b.constant(np.int64(5)), *more), "y", [None] * 4)
    check_one_program(b.build(), [{"n": n, "samples": s} for n, s in [(1, 40), (2, 101), (1, 16)]])


def test_a_transform_of_each_of_any_number_of_rows() -> None:
    b = GraphBuilder("transform", seed=0, opset=20)
    x = b.input("x", ["n", 12, 1])
    b.output(b.op("DFT", x), "y", ["n", 12, 2])
    check_one_program(b.build(), [{"n": n} for n in (2, 5, 1)])


@pytest.mark.parametrize("pads", [[0] * 4, [1] * 4])
def test_means_of_windows_of_any_number_of_images(pads: list[int]) -> None:
    b = GraphBuilder("pool", seed=0, opset=20)
    x = b.input("x", ["n", 3, 7, 7])
    pooled = b.op("AveragePool", x, kernel_shape=[3, 3], pads=pads)
    b.output(pooled, "y", ["n", 3, 5 + pads[0] * 2, 5 + pads[0] * 2])
    check_one_program(b.build(), [{"n": n} for n in (2, 5, 1)])


def test_scales_of_blocks() -> None:
    b = GraphBuilder("blocks", seed=0, opset=21)
    x = b.input("x", ["n", 8])
    scale = b.op("Abs", b.input("scale", ["n", 2]))
    quantised = b.op("Cast", x, to=TensorProto.INT8)
    b.output(b.op("DequantizeLinear", quantised, scale, axis=1, block_size=4), "y", ["n", 8])
    check_one_program(b.build(), [{"n": n} for n in (2, 5, 1)])


def test_statistics_of_a_batch() -> None:
    """Checks the variance by hand, since ONNX Runtime divides by one element less than the
    standard.
    """
    b = GraphBuilder("batch", seed=0)
    x = b.input("x", ["n", 4])
    ones, zeros = (b.constant(np.full(4, number, np.float32)) for number in (1, 0))
    y, *_ = b.ops("BatchNormalization", x, ones, zeros, zeros, ones, outputs=3, training_mode=1)
    b.output(y, "y", ["n", 4])
    with compiled(b.build()) as executable:
        for rows in (3, 8):
            data = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
            expected = (data - data.mean(0)) / np.sqrt(data.var(0) + 1e-5)
            np.testing.assert_allclose(executable.run({"x": data})["y"], expected, 1e-4, 1e-5)
        assert len(generic_programs(executable)) == 1


def random_numbers(rows: str | int) -> ModelProto:
    b = GraphBuilder("noise", seed=0)
    x = b.input("x", [rows, 30])
    noise = b.op("RandomNormalLike", x, seed=3.0)
    more = b.op("RandomUniformLike", x, seed=4.0)
    drawn = b.op("Multinomial", b.op("Abs", x), sample_size=7, seed=5.0)
    kept = b.op("Bernoulli", b.op("Sigmoid", x), seed=6.0)
    summed = b.op("Cast", b.op("ReduceSum", drawn, b.ints(1)), to=TensorProto.FLOAT)
    b.output(b.op("Add", b.op("Add", noise, more), b.op("Add", kept, summed)), "y", [rows, 30])
    return b.build()


def test_random_numbers_are_those_of_a_model_of_that_size() -> None:
    """Checks random values against a model of fixed size, since another runtime draws others."""
    with compiled(random_numbers("n")) as executable:
        for rows in (2, 9, 1):
            x = np.random.default_rng(rows).standard_normal((rows, 30)).astype(np.float32)
            with byoc_mlir.compile(random_numbers(rows), targets=()) as fixed:
                expected = fixed.run({"x": x})["y"]
            np.testing.assert_allclose(executable.run({"x": x})["y"], expected, rtol=1e-6)
        assert len(generic_programs(executable)) == 1
        assert len(fixed_programs(executable)) == 0
