"""Small networks for `bf16x3`, and checks that run at every instruction set."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.onednn.engine import engine
from byoc_mlir.runtime import Executable
from byoc_mlir.testing.networks.builder import GraphBuilder
from byoc_mlir.testing.reference import random_inputs, run_onnxruntime

BOUND = 3e-5
"""Maximum error of an element, relative to the largest."""


def convolutions() -> ModelProto:
    """Returns convolutions with one group, with several groups, and depthwise, with strides, a
    residual and a classifier.
    """
    net = GraphBuilder("convolutions", seed=0)
    x = net.relu(net.conv(net.input("x", [2, 3, 24, 20]), 16, 3, stride=2))
    y = net.conv(net.relu(net.conv(x, 16, 3, groups=4)), 16, 1)
    x = net.relu(net.add(x, y))
    x = net.relu6(net.conv(x, 16, 3, groups=16))
    net.output(net.classifier(x, 10), "y", [2, 10])
    return net.build()


def attention() -> ModelProto:
    """Returns matmuls of activations, one with itself, and a residual that is a matmul's
    operand."""
    net = GraphBuilder("attention", seed=0)
    x = net.input("x", [2, 12, 16], channel_axis=2)
    scores = net.op("MatMul", x, net.transpose(x, 0, 2, 1))
    x = net.add(x, net.op("MatMul", net.op("Softmax", scores, axis=-1), x))
    net.output(net.add(x, net.linear(x, 16)), "y", [2, 12, 16])
    return net.build()


def wide() -> ModelProto:
    """Returns a small convolution, and matmuls with enough MACs to be profitable."""
    net = GraphBuilder("wide", seed=0)
    x = net.relu(net.conv(net.input("x", [1, 4, 32, 32]), 4, 1))
    x = net.relu(net.conv(net.conv(x, 64, 1), 64, 3))
    net.output(net.classifier(x, 4096), "y", [1, 4096])
    return net.build()


MODELS = {"convolutions": convolutions, "attention": attention}


def compiled(model: ModelProto, options: str = "{split_products=all}") -> Executable:
    """Compiles the model with all matmuls split if the processor has any `bf16` instructions."""
    return byoc_mlir.compile(
        model, (f"dnnl{options}",), threads=1, precision="bf16x3", prune="off", fallback="allow"
    )


def check_network(name: str) -> None:
    """Checks that a network's results equal ONNX Runtime's, and checks the report."""
    model = MODELS[name]()
    inputs = random_inputs(model)
    with compiled(model) as executable:
        found, report = executable.run(inputs), executable.report()
    for output, wanted in run_onnxruntime(model, inputs).items():
        assert found[output].dtype == np.float32
        assert np.abs(found[output] - wanted).max() <= BOUND * np.abs(wanted).max()
    if engine().has_bf16:
        assert set(report.multiplications) == {"bf16x3"}
        assert not any("ref" in row.implementation for row in report), report
    else:
        assert set(report.multiplications) == {"f32"}
        assert "this processor has no instructions for bf16" in str(report)
