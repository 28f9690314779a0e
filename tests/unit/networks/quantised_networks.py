"""Small networks, quantised by ONNX Runtime's tools in all of their forms."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import random_inputs

TOKENS, WIDTH, HEADS = 6, 16, 2


def convnet() -> ModelProto:
    """Returns convolutions of all kinds, with the ops between them in mobile networks."""
    b = GraphBuilder("convnet", seed=1)
    x = b.relu(b.conv(b.input("x", [2, 3, 12, 12]), 8, 3))
    y = b.swish(b.conv(b.relu6(b.conv(x, 8, 3, groups=8)), 8, 1))
    x = b.op("LeakyRelu", b.add(x, y), alpha=0.1)
    x = b.concat(b.max_pool(x, 2, 2), b.average_pool(x, 2, 2))
    x = b.relu(b.conv(b.op("Transpose", x, perm=[0, 1, 3, 2]), 12, 3, stride=2))
    b.channels[x] = 12
    x = b.op("Flatten", b.op("GlobalAveragePool", x))
    b.channels[x] = 12
    b.output(b.linear(x, 5), "y", [2, 5])
    return b.build()


def encoder() -> ModelProto:
    """Returns a layer of attention, and the feed-forward layer after it."""
    b = GraphBuilder("encoder", seed=2)
    x = b.input("x", [1, TOKENS, WIDTH], channel_axis=2)

    def projected(*order: int) -> str:
        return b.transpose(b.reshape(b.linear(x, WIDTH), 1, TOKENS, HEADS, 8), *order)

    query, key, value = projected(0, 2, 1, 3), projected(0, 2, 3, 1), projected(0, 2, 1, 3)
    scores = b.op("Div", b.op("MatMul", query, key), b.scalar(8**0.5))
    seen = b.op("MatMul", b.op("Softmax", scores, axis=-1), value)
    y = b.reshape(b.transpose(seen, 0, 2, 1, 3), 1, TOKENS, WIDTH)
    x = _normalised(b, b.add(b.linear(y, WIDTH), x))
    y = b.relu(b.linear(x, 2 * WIDTH))
    b.output(_normalised(b, b.add(b.linear(y, WIDTH), x)), "y", [1, TOKENS, WIDTH])
    return b.build()


def _normalised(b: GraphBuilder, x: str) -> str:
    scale, shift = b.uniform((WIDTH,), 0.7, 1.2, "gamma"), b.normal((WIDTH,), 0.1, "beta")
    y = b.op("LayerNormalization", x, scale, shift)
    b.channels[y] = WIDTH
    return y


class _Samples(CalibrationDataReader):
    def __init__(self, model: ModelProto):
        self.left = [random_inputs(model, seed) for seed in range(10, 16)]

    def get_next(self) -> Any:
        return self.left.pop() if self.left else None


def static(model: ModelProto, form: QuantFormat, **options: Any) -> ModelProto:
    """Quantises a model with ranges from samples."""
    return _in_files(
        model,
        lambda source, target: quantize_static(
            source, target, _Samples(model), quant_format=form, **options
        ),
    )


def dynamic(model: ModelProto) -> ModelProto:
    """Quantises a model with ranges that are computed at run time."""
    return _in_files(model, quantize_dynamic)


def _in_files(model: ModelProto, quantise: Callable[[str, str], None]) -> ModelProto:
    """Returns the result of a function that reads a model from one file and writes to another."""
    logging.disable(logging.WARNING)
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, target = str(Path(folder) / "model.onnx"), str(Path(folder) / "quantised.onnx")
            onnx.save(model, source)
            quantise(source, target)
            return onnx.load(target)
    finally:
        logging.disable(logging.NOTSET)


_SIGNED = {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8}
_MAKERS: Mapping[str, Callable[[], ModelProto]] = {
    "convnet, QDQ": lambda: static(convnet(), QuantFormat.QDQ),
    "convnet, QDQ, per channel, signed": lambda: static(
        convnet(), QuantFormat.QDQ, per_channel=True, **_SIGNED
    ),
    "convnet, QDQ, unsigned weights": lambda: static(
        convnet(),
        QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QUInt8,
    ),
    "convnet, QOperator": lambda: static(convnet(), QuantFormat.QOperator, per_channel=True),
    "encoder, QDQ": lambda: static(encoder(), QuantFormat.QDQ),
    "encoder, QOperator": lambda: static(encoder(), QuantFormat.QOperator),
    "encoder, dynamic": lambda: dynamic(encoder()),
}
QUANTISED: Mapping[str, Callable[[], ModelProto]] = {
    name: lru_cache(partial(make)) for name, make in _MAKERS.items()
}
"""Quantised models by name, each built once."""


def output_step(model: ModelProto) -> float:
    """Returns the step of the output's quantisation; 0.01 if it has none."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    makers = {node.output[0]: node for node in model.graph.node}
    last = makers["y"]
    while last.op_type == "Identity":
        last = makers[last.input[0]]
    if last.op_type != "DequantizeLinear":
        return 0.01
    return float(numpy_helper.to_array(constants[last.input[1]]))


def run_as_written(model: ModelProto, inputs: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Returns the output by ONNX Runtime without optimisations.

    Models with `MatMulInteger` use the reference evaluator, since its sums saturate in ONNX Runtime
    on processors without VNNI. ONNX Runtime's optimiser rounds differently: by up to five steps in
    networks that normalise rounded values.
    """
    if any(node.op_type == "MatMulInteger" for node in model.graph.node):
        results: Any = ReferenceEvaluator(model).run(["y"], dict(inputs))
        return np.asarray(results[0])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    (y,) = session.run(["y"], dict(inputs))
    return np.asarray(y)


def steps_between(found: NDArray[Any], expected: NDArray[Any], step: float) -> NDArray[Any]:
    """Returns the differences in steps, rounded to a thousandth of one."""
    return np.round(np.abs(found.astype(np.float64) - expected) / step, 3)
