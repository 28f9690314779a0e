"""Recurrent networks."""

from __future__ import annotations

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
            x = b.bidirectional_lstm(x, 256)
    b.output(b.linear(x, 64, gain=2.0), "logits", [steps, batch, 64])
    return b.build()
