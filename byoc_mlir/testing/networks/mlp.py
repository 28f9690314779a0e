"""Multi-layer perceptrons, and a convolutional network of MNIST size."""

from __future__ import annotations

from onnx import ModelProto

from byoc_mlir.testing.networks.builder import GraphBuilder


def mlp(*, seed: int = 0, batch: int = 1) -> ModelProto:
    """Builds four dense layers with softmax at the end: `input [N, 784]` to `output [N, 1000]`."""
    b = GraphBuilder("mlp", seed=seed)
    x = b.input("input", [batch, 784])
    for features in (2048, 2048, 1024):
        x = b.relu(b.gemm(x, features))
    b.output(b.op("Softmax", b.gemm(x, 1000, gain=2.0), axis=-1), "output", [batch, 1000])
    return b.build()


def mlp3(*, seed: int = 0, batch: int = 1) -> ModelProto:
    """Builds three dense layers so small that the call costs more than the MACs: `[N, 64]` to `[N,
    10]`.
    """
    b = GraphBuilder("mlp3", seed=seed)
    x = b.relu(b.gemm(b.input("input", [batch, 64]), 128, gain=1.0))
    x = b.relu(b.gemm(x, 64))
    b.output(b.gemm(x, 10), "output", [batch, 10])
    return b.build()


def mnist(*, seed: int = 0, batch: int = 1) -> ModelProto:
    """Builds LeCun's LeNet-5 with ReLU and max pooling: `image [N, 1, 28, 28]` to `output [N,
    10]`."""
    b = GraphBuilder("mnist", seed=seed)
    x = b.input("image", [batch, 1, 28, 28])
    x = b.max_pool(b.relu(b.conv(x, 6, 5, gain=1.0)), 2, 2)
    x = b.max_pool(b.relu(b.conv(x, 16, 5, padding=0)), 2, 2)
    x = b.op("Flatten", x, axis=1)
    b.channels[x] = 16 * 5 * 5
    x = b.relu(b.gemm(x, 120))
    x = b.relu(b.gemm(x, 84))
    b.output(b.gemm(x, 10), "output", [batch, 10])
    return b.build()
