"""Networks with sequences of any length, from images to text and from text to sound."""

from __future__ import annotations

import math

import numpy as np
from onnx import ModelProto, TensorProto

from byoc_mlir.testing.networks.builder import RELU_GAIN, GraphBuilder


def recogniser(*, seed: int = 0, classes: int = 96) -> ModelProto:
    """Builds a recogniser of lines of text (Shi et al., 2015), convolutions and then two
    bidirectional LSTM layers: `image [batch, 1, 32, width]` to `logits [width/4, batch, classes]`.
    """
    b = GraphBuilder("recogniser", seed=seed)
    x = b.input("image", ["batch", 1, 32, "width"])
    for index, channels in enumerate((32, 64, 128, 256)):
        with b.scope(f"conv{index}"):
            x = b.relu(b.batch_norm(b.conv(x, channels, 3, bias=False)))
            x = b.max_pool(x, 2, 2) if index < 2 else _halved_height(b, x)
    x = b.conv(x, 256, (2, 1), padding=0)  # [batch, 256, 1, width/4]
    x = b.transpose(b.op("Squeeze", x, b.ints(2)), 2, 0, 1)
    b.channels[x] = 256
    for index in range(2):
        with b.scope(f"lstm{index}"):
            x = b.bidirectional_lstm(x, 128, bias=False)
    b.output(b.linear(x, classes, gain=2.0), "logits", [None, "batch", classes])
    return b.build()


def synthesiser(*, seed: int = 0, width: int = 192, phonemes: int = 80) -> ModelProto:
    """Builds a synthesiser of speech in one pass (Ren et al., 2019): `phonemes [1, length]` to
    `features [1, 80, frames]`. The model computes the number of frames of each phoneme.
    """
    b = GraphBuilder("synthesiser", seed=seed)
    ids = b.input("phonemes", [1, "length"], TensorProto.INT64)
    x = b.transpose(b.op("Gather", b.normal((phonemes, width), 1.0, "embedding"), ids), 0, 2, 1)
    b.channels[x] = width
    x = _convolutions(b, x, "encoder", 4)
    frames = _lengthened(b, x, _durations(b, x))
    b.channels[frames] = width
    b.output(_conv1d(b, _convolutions(b, frames, "decoder", 4), 80), "features", [1, 80, None])
    return b.build()


def _halved_height(b: GraphBuilder, x: str) -> str:
    return b.op("MaxPool", x, kernel_shape=[2, 1], strides=[2, 1])


def _conv1d(b: GraphBuilder, x: str, channels: int, kernel: int = 5) -> str:
    fan_in = b.channels[x] * kernel
    weight = b.normal((channels, b.channels[x], kernel), RELU_GAIN / math.sqrt(fan_in))
    bias = b.normal((channels,), 0.1, "bias")
    y = b.op("Conv", x, weight, bias, kernel_shape=[kernel], pads=[kernel // 2] * 2)
    b.channels[y] = channels
    return y


def _convolutions(b: GraphBuilder, x: str, name: str, count: int) -> str:
    for index in range(count):
        with b.scope(f"{name}.{index}"):
            x = b.relu(_conv1d(b, x, b.channels[x]))
    return x


def _durations(b: GraphBuilder, x: str) -> str:
    """Adds the number of frames of each phoneme, 1 to 7: `[1, C, L]` to `[1, L]`."""
    share = b.op("Sigmoid", b.op("Squeeze", _conv1d(b, x, 1), b.ints(1)))
    frames = b.op("Add", b.op("Round", b.op("Mul", share, b.scalar(6.0))), b.scalar(1.0))
    return b.op("Cast", frames, to=TensorProto.INT64)


def _lengthened(b: GraphBuilder, x: str, durations: str) -> str:
    """Repeats each column as often as its duration says: `[1, C, L]` to `[1, C, frames]`."""
    zero, one = (b.constant(np.array(number, np.int64)) for number in (0, 1))
    total = b.op("ReduceSum", durations, keepdims=0)
    frames = b.op("Unsqueeze", b.op("Range", zero, total, one), b.ints(1))
    ends = b.op("CumSum", durations, one)
    starts = b.op("Sub", ends, durations)
    is_in = b.op("And", b.op("GreaterOrEqual", frames, starts), b.op("Less", frames, ends))
    chosen = b.transpose(b.op("Cast", is_in, to=TensorProto.FLOAT), 1, 0)
    return b.op("MatMul", x, chosen)
