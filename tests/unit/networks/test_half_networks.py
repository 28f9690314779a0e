"""Models of `f16`: they agree with ONNX Runtime, and their matmuls have the placement of `f32`
ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from helpers.models import parsed
from onnx import ModelProto, TensorProto, numpy_helper

import byoc_mlir
from byoc_mlir.testing.networks.builder import GraphBuilder
from byoc_mlir.testing.reference import run_onnxruntime


def _of_f16(model: ModelProto) -> ModelProto:
    """Returns the model with weights, inputs and outputs of `f16`."""
    for weight in model.graph.initializer:
        if weight.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(weight).astype(np.float16)
            weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def _convolutions() -> ModelProto:
    net = GraphBuilder("convolutions", seed=0)
    x = net.input("x", [1, 8, 12, 12])
    x = net.max_pool(net.relu(net.conv(x, 16, 3)), 2, 2)
    x = net.relu(net.add(x, net.batch_norm(net.conv(x, 16, 3))))
    net.output(net.classifier(x, 10), "y", [1, 10])
    return _of_f16(net.build())


def _rows() -> ModelProto:
    net = GraphBuilder("rows", seed=0)
    x = net.input("x", [3, 5, 32], channel_axis=2)
    gate = net.op("Softmax", net.linear(x, 32), axis=-1)
    net.output(net.linear(net.op("Mul", net.op("Tanh", x), gate), 8), "y", [3, 5, 8])
    return _of_f16(net.build())


@pytest.mark.values
@pytest.mark.parametrize("targets", [(), ("dnnl",)], ids=["host", "dnnl"])
@pytest.mark.parametrize("make", [_convolutions, _rows])
def test_a_network(make: Callable[[], ModelProto], targets: tuple[str, ...]) -> None:
    model = make()
    shape = [one.dim_value for one in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float16)
    with byoc_mlir.compile(
        model, targets=targets, threads=1, prune="off", fallback="allow"
    ) as executable:
        found, report = executable.run({"x": x})["y"], executable.report()
    wanted = run_onnxruntime(model, {"x": x})["y"]
    assert found.dtype == np.float16
    largest = float(np.abs(wanted).max())
    assert np.abs(found.astype(np.float32) - wanted.astype(np.float32)).max() <= 2e-3 * largest
    assert set(report.multiplications) == {"f32"}
    if targets:
        assert all(row.placement == "dnnl" for row in report if row.op_type in ("Conv", "Gemm"))


def test_close_numbers_are_told_apart_as_f16() -> None:
    nodes = "s = Add (x, d) y = ArgMax <axis = 0, keepdims = 0> (s)"
    model = parsed("(float16[3] x, float16[3] d) => (y)", nodes)
    x = np.ones(3, np.float16)
    d = np.array([0, 0, 2.0**-12], np.float16)  # 1 + 2^-12 is 1 in f16: the first is the largest
    with byoc_mlir.compile(model, targets=()) as executable:
        assert executable.run({"x": x, "d": d})["y"] == 0
