"""Recurrent networks."""

from __future__ import annotations

import math

from onnx import ModelProto

from byoc_mlir.testing.networks.builder import GraphBuilder


def lstm2(*, seed: int = 0, batch: int = 1, steps: int = 64) -> ModelProto:
    """Builds two bidirectional LSTM layers of 256 and a dense layer at every step: `features [T, N,
    128]` to `logits [T, N, 64]`.
    """
    b = GraphBuilder("lstm2", seed=seed)
    x = b.input("features", [steps, batch, 128], channel_axis=2)
    for index in range(2):
        with b.scope(f"lstm.{index}"):
            x = _bidirectional(b, x, 256)
    b.output(b.linear(x, 64, gain=2.0), "logits", [steps, batch, 64])
    return b.build()


def _bidirectional(b: GraphBuilder, x: str, hidden: int) -> str:
    """Adds a bidirectional LSTM: `[T, N, C]` to `[T, N, 2*hidden]`."""
    width = b.channels[x]
    y, _, _ = b.ops(
        "LSTM",
        x,
        b.normal((2, 4 * hidden, width), 1.5 / math.sqrt(width), "W"),
        b.normal((2, 4 * hidden, hidden), 1.0 / math.sqrt(hidden), "R"),
        b.normal((2, 8 * hidden), 0.2, "B"),
        outputs=3,
        hidden_size=hidden,
        direction="bidirectional",
    )
    return b.reshape(b.transpose(y, 0, 2, 1, 3), 0, 0, 2 * hidden)
