"""Networks of speech and text in the interpreter tier: equal to ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from byoc_mlir.interpreter.model import InterpretedModel
from byoc_mlir.interpreter.tier_ops import unknown
from byoc_mlir.tensors import Array
from byoc_mlir.testing.networks.builder import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime


def spectrogram() -> ModelProto:
    """Builds a mel spectrogram by convolutions: `samples [1, n]` to `mel [1, frames, 32]`."""
    b = GraphBuilder("spectrogram", seed=1)
    x = b.op("Unsqueeze", b.input("samples", [1, "n"]), b.ints(1))
    parts = [b.op("Conv", x, b.normal((257, 1, 512), 0.05), strides=[160]) for _ in range(2)]
    power = b.add(*[b.op("Mul", part, part) for part in parts])
    mel = b.op("MatMul", b.transpose(power, 0, 2, 1), b.uniform((257, 32), 0.0, 1.0, "filters"))
    log = b.op("Log", b.op("Clip", mel, b.scalar(1e-10)))
    floor = b.op("Sub", b.op("ReduceMax", log, keepdims=0), b.scalar(8.0))
    b.output(b.op("Max", log, floor), "mel", [1, "frames", 32])
    return b.build()


def reader() -> ModelProto:
    """Builds a classifier of lines of text, of blocks with squeezed channels: `image [1, 3, 48, w]`
    to `scores [1, 4]`.
    """
    b = GraphBuilder("reader", seed=2)
    x = _hard_swish(b, b.conv(b.input("image", [1, 3, 48, "w"]), 8, 3, stride=2))
    for inner, channels in ((8, 8), (24, 8), (40, 16), (48, 16), (104, 32), (200, 32)):
        y = _hard_swish(b, b.conv(x, inner, 1))
        y = _hard_swish(b, b.conv(y, inner, 3, groups=inner))
        share = b.relu(b.conv(b.op("GlobalAveragePool", y), max(2, inner // 4), 1))
        share = b.op("HardSigmoid", b.conv(share, inner, 1), alpha=0.2, beta=0.5)
        x = b.conv(b.op("Mul", y, share), channels, 1)
    pooled = b.op("Flatten", b.op("GlobalAveragePool", x))
    b.output(b.op("Softmax", b.gemm(pooled, 4)), "scores", [1, 4])
    return b.build()


def tagger(kind: str) -> ModelProto:
    """Builds two layers in both directions: `words [1, n]` to `tags [n, 1, 20]`."""
    b = GraphBuilder("tagger", seed=3)
    gates, width, hidden = {"LSTM": 4, "GRU": 3}[kind], 64, 96
    words = b.input("words", [1, "n"], TensorProto.INT64)
    x = b.transpose(b.op("Gather", b.normal((500, width), 1.0), words), 1, 0, 2)
    for _ in range(2):
        weights = [b.normal((2, gates * hidden, size), size**-0.5) for size in (width, hidden)]
        bias, width = b.normal((2, 2 * gates * hidden), 0.2), 2 * hidden
        y = b.op(kind, x, *weights, bias, hidden_size=hidden, direction="bidirectional")
        x = b.reshape(b.transpose(y, 0, 2, 1, 3), 0, 0, width)
    b.output(b.op("MatMul", x, b.normal((width, 20), 0.1)), "tags", ["n", 1, 20])
    return b.build()


def _hard_swish(b: GraphBuilder, x: str) -> str:
    return b.op("Mul", x, b.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))


def _samples(rng: np.random.Generator, size: int) -> dict[str, Array]:
    return {"samples": rng.standard_normal((1, 40 * size), np.float32)}


def _image(rng: np.random.Generator, size: int) -> dict[str, Array]:
    return {"image": rng.standard_normal((1, 3, 48, size), np.float32)}


def _words(rng: np.random.Generator, size: int) -> dict[str, Array]:
    return {"words": rng.integers(0, 500, (1, size // 5))}


@pytest.mark.parametrize(
    ("build", "inputs"),
    [
        (spectrogram, _samples),
        (reader, _image),
        (lambda: tagger("LSTM"), _words),
        (lambda: tagger("GRU"), _words),
    ],
    ids=["spectrogram", "reader", "LSTM", "GRU"],
)
def test_networks_answer_for_any_size(
    build: Callable[[], ModelProto],
    inputs: Callable[[np.random.Generator, int], dict[str, Array]],
) -> None:
    model, rng = build(), np.random.default_rng(0)
    assert not unknown(model)
    tensors = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    interpreted = InterpretedModel(model, tensors, 1)
    for size in (192, 128, 200):
        given = inputs(rng, size)
        assert_agrees(interpreted.run(given), run_onnxruntime(model, given))
