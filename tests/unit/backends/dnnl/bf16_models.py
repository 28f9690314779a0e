"""Small networks in `bf16`, and checks that run at every instruction set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.onednn.engine import engine
from byoc_mlir.runtime import Executable
from byoc_mlir.testing.networks.builder import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

STEP = 2.0**-8
"""Half a step of `bf16`, relative to the value."""


def convolutions() -> ModelProto:
    """Returns a stem, a pool, a block with a residual, a depthwise convolution, and a
    classifier."""
    net = GraphBuilder("convolutions", seed=0)
    x = net.input("x", [1, 3, 48, 48])
    x = net.max_pool(net.relu(net.conv(x, 16, 3)), 2, 2)
    y = net.conv(net.relu(net.conv(x, 16, 3)), 16, 3)
    x = net.relu(net.add(x, y))
    x = net.relu6(net.conv(x, 16, 3, groups=16))
    net.output(net.classifier(x, 4096), "y", [1, 4096])
    return net.build()


def dense_blocks() -> ModelProto:
    """Returns two blocks whose batch norms read all earlier results of their block."""
    net = GraphBuilder("dense_blocks", seed=0)
    x = net.relu(net.conv(net.input("x", [1, 3, 32, 32]), 32, 3))
    for _ in range(2):
        for _ in range(2):
            y = net.relu(net.conv(net.relu(net.batch_norm(x)), 64, 1))
            x = net.concat(x, net.conv(y, 32, 3, bias=False))
        x = net.average_pool(net.conv(net.relu(net.batch_norm(x)), 64, 1), 2, 2)
    net.output(net.classifier(net.relu(net.batch_norm(x)), 1024), "y", [1, 1024])
    return net.build()


def attention() -> ModelProto:
    """Returns matmuls of activations, a softmax and a gelu between matmuls with weights."""
    net = GraphBuilder("attention", seed=0)
    x = net.input("x", [1, 64, 64], channel_axis=2)
    heads = [
        net.transpose(net.reshape(net.linear(x, 64), 1, 64, 4, 16), *axes)
        for axes in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
    ]
    scores = net.op("Softmax", net.op("MatMul", heads[0], heads[1]), axis=-1)
    mixed = net.transpose(net.op("MatMul", scores, heads[2]), 0, 2, 1, 3)
    x = net.add(x, net.linear(net.reshape(mixed, 1, 64, 64), 64))
    y = net.linear(x, 64)
    cut = net.op("Erf", net.op("Div", y, net.scalar(2**0.5)))
    y = net.op("Mul", net.op("Mul", y, net.op("Add", cut, net.scalar(1.0))), net.scalar(0.5))
    net.output(net.linear(y, 64), "y", [1, 64, 64])
    return net.build()


def shuffle() -> ModelProto:
    """Returns convolutions with a shuffle of the channels of several groups between them."""
    net = GraphBuilder("shuffle", seed=0)
    x = net.relu(net.conv(net.input("x", [1, 3, 40, 40]), 16, 1))
    x = net.reshape(net.transpose(net.reshape(x, 1, 4, 4, 40, 40), 0, 2, 1, 3, 4), 1, 16, 40, 40)
    net.channels[x] = 16
    net.output(net.conv(x, 16, 3, groups=4), "y", [1, 16, 40, 40])
    return net.build()


MODELS = {"convolutions": convolutions, "dense_blocks": dense_blocks, "attention": attention}

_BF16_UNITS = re.compile("bf16|amx")
"""Pattern of oneDNN's names for implementations that multiply `bf16`."""


def compiled(model: ModelProto, precision: str = "bf16", **options: Any) -> Executable:
    """Compiles the model for one thread of oneDNN, without measurements that keep convolutions in
    `f32`.
    """
    return byoc_mlir.compile(
        model,
        targets=("dnnl{winograd=off}",),
        threads=1,
        precision=precision,
        prune="off",
        **options,
    )


def check_network(name: str) -> None:
    """Checks that a network's results equal ONNX Runtime's in `f32` up to some roundings, and
    checks the report.
    """
    model = MODELS[name]()
    inputs = random_inputs(model)
    with compiled(model) as executable:
        found, report = executable.run(inputs), executable.report()
    assert_close(found, run_onnxruntime(model, inputs))
    products = [row for row in report if row.op_type in ("Conv", "MatMul", "Gemm")]
    if engine().has_bf16:
        assert set(report.multiplications) == {"bf16"}
        assert all(_BF16_UNITS.search(row.implementation) for row in products), report
        return
    assert set(report.multiplications) == {"f32"}
    assert "this processor has no instructions for bf16" in str(report)
    with compiled(model, "f32") as executable:
        exact = executable.run(inputs)
    assert_agrees(found, exact, tolerance=1e-5)  # in other layouts, if that is measured to gain


def check_whole_windows(*sizes: str) -> None:
    """Checks a transposed convolution whose strides equal its window, between other
    convolutions."""
    window = [int(size) for size in sizes]
    shape = [2, 40, *(pixels * size for pixels, size in zip((9, 7), window, strict=True))]
    net = GraphBuilder("net", seed=0)
    x = net.relu(net.conv(net.input("x", [2, 3, 9, 7]), 64, 1))
    weights, bias = net.normal((64, 40, *window), 0.1), net.normal((40,), 1.0)
    y = net.relu(net.op("ConvTranspose", x, weights, bias, strides=window))
    net.channels[y] = 40
    net.output(net.conv(y, 40, 1), "y", shape)
    model = net.build()
    inputs = random_inputs(model)
    with compiled(model) as executable:
        assert_close(executable.run(inputs), run_onnxruntime(model, inputs))
        rows = {row.node: row for row in executable.report()}
    if engine().has_bf16:
        assert rows["/ConvTranspose"].precision == rows["/Conv_1"].precision == "bf16"
        assert "ref" not in rows["/ConvTranspose"].implementation


def assert_close(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Asserts that outputs are equal up to some roundings."""
    for name, expected in wanted.items():
        assert found[name].dtype == np.float32
        assert np.abs(found[name] - expected).max() <= 8 * STEP * np.abs(expected).max()
