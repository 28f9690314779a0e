"""Sequences of ops in exporters' models for which oneDNN has one primitive."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto, numpy_helper

import byoc_mlir

RNG = np.random.default_rng(0)


def model(text: str, **weights: np.ndarray) -> ModelProto:
    made = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]>\n{text}')
    made.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    return made


def check(made: ModelProto, composite: str, **inputs: np.ndarray) -> None:
    with byoc_mlir.compile(made, targets=("dnnl",), fallback="allow") as found:
        assert composite in {row.composite for row in found.report()}
        got = found.run(inputs)["y"]
    wanted = np.asarray(ort.InferenceSession(made.SerializeToString()).run(None, inputs)[0])
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_layer_norm_by_a_reciprocal_root():
    made = model(
        """g (float[1, 49, 64] x) => (float[1, 49, 64] y) {
             mean = ReduceMean(x, axis)
             d = Sub(x, mean)
             square = Mul(d, d)
             variance = ReduceMean(square, axis)
             shifted = Add(variance, epsilon)
             root = Sqrt(shifted)
             inverse = Reciprocal(root)
             normed = Mul(inverse, d)
             scaled = Mul(normed, gamma)
             y = Add(scaled, beta) }""",
        axis=np.asarray([-1]),
        epsilon=np.asarray(1e-5, np.float32),
        gamma=normal(64),
        beta=normal(64),
    )
    check(made, "dnnl.layer_norm", x=normal(1, 49, 64))
