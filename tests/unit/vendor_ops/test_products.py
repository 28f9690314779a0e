"""Convolutions, matmuls, activations and normalisations of `com.microsoft`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from nodes import Arrays, check_node, node_model, run_imported

import byoc_mlir
from byoc_mlir.errors import ByocError, UnsupportedModelError
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RNG.standard_normal(shape).astype(np.float32)


ACTIVATIONS: Mapping[str, tuple[float, ...]] = {
    "Relu": (),
    "Tanh": (),
    "Sigmoid": (),
    "LeakyRelu": (0.2,),
    "Clip": (-0.5, 0.7),
    "HardSigmoid": (0.3, 0.4),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_fused_conv_with_activation(activation: str) -> None:
    parameters = ACTIVATIONS[activation]
    more: dict[str, Any] = {"activation_params": list(parameters)} if parameters else {}
    inputs = {"x": floats(1, 4, 7, 7), "w": floats(6, 4, 3, 3), "b": floats(6)}
    check_node("FusedConv", inputs, constants=("w", "b"), activation=activation, **more)


@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        (
            {
                "x": floats(1, 4, 7, 7),
                "w": floats(6, 2, 3, 3),
                "b": floats(6),
                "z": floats(1, 6, 4, 4),
            },
            {"group": 2, "strides": [2, 2], "pads": [1, 1, 1, 1]},
        ),
        (
            {"x": floats(1, 4, 7), "w": floats(6, 4, 3), "b": None, "z": floats(1, 6, 7)},
            {"auto_pad": "SAME_UPPER"},
        ),
        ({"x": floats(1, 4, 7, 7), "w": floats(6, 4, 3, 3)}, {"dilations": [2, 2]}),
    ],
)
def test_fused_conv_adds_before_the_activation(inputs: Arrays, attributes: dict[str, Any]) -> None:
    check_node("FusedConv", inputs, constants=("w",), activation="Relu", **attributes)


def test_fused_conv_is_one_composite() -> None:
    inputs = {"x": floats(1, 8, 7, 7), "w": floats(8, 8, 3, 3), "b": floats(8)}
    model = node_model("FusedConv", inputs, constants=("w", "b"), activation="Relu")
    with byoc_mlir.compile(model, ("dnnl",)) as executable:
        got = executable.run({"x": inputs["x"]})
        rows = executable.report().rows
    assert_agrees(got, run_onnxruntime(model, {"x": inputs["x"]}), 1e-5)
    assert [(row.placement, row.composite) for row in rows] == [("dnnl", "dnnl.conv2d_bias_relu")]


@pytest.mark.parametrize("op_type", ["NhwcConv", "NhwcFusedConv"])
def test_channels_last(op_type: str) -> None:
    """Checks against a convolution of transposed data, since ONNX Runtime has no NHWC kernel on
    CPUs.
    """
    data, weight, bias = floats(2, 5, 6, 4), floats(3, 4, 3, 3), floats(3)
    last = {"x": data, "w": weight, "b": bias}
    first = {**last, "x": data.transpose(0, 3, 1, 2)}
    want = run_onnxruntime(node_model("FusedConv", first, pads=[1, 0, 0, 1]), first)["y"]
    got = run_imported(node_model(op_type, last, pads=[1, 0, 0, 1]), last)
    assert_agrees(got, {"y": want.transpose(0, 2, 3, 1)}, 2e-6)


@pytest.mark.parametrize(
    ("shapes", "attributes"),
    [
        (((2, 3, 4, 5), (2, 3, 5, 6)), {"alpha": 0.3}),
        (((2, 3, 5, 4), (2, 3, 6, 5)), {"transA": 1, "transB": 1}),
        (((4, 2, 3, 5), (5, 2, 3, 6)), {"transBatchA": 1, "transBatchB": 1}),
        (
            ((5, 2, 3, 4), (6, 2, 3, 5)),
            {"transBatchA": 1, "transBatchB": 1, "transA": 1, "transB": 1},
        ),
        (((5,), (5, 6)), {"transA": 1}),
    ],
)
def test_fused_matmul(shapes: tuple[tuple[int, ...], ...], attributes: dict[str, Any]) -> None:
    a, b = (floats(*shape) for shape in shapes)
    check_node("FusedMatMul", {"a": a, "b": b}, **attributes)
    check_node("FusedMatMul", {"a": a, "b": b}, constants=("b",), **attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {"activation": "Relu", "alpha": 0.5, "beta": 2.0},
        {"activation": "LeakyRelu", "activation_alpha": 0.3},
        {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4},
        {"activation": "Tanh", "transA": 1, "transB": 1},
    ],
)
def test_fused_gemm(attributes: dict[str, Any]) -> None:
    a, b = (floats(5, 3), floats(6, 5)) if "transA" in attributes else (floats(3, 5), floats(5, 6))
    check_node("FusedGemm", {"a": a, "b": b, "c": floats(6)}, constants=("b", "c"), **attributes)
    check_node("FusedGemm", {"a": a, "b": b}, **attributes)


@pytest.mark.parametrize(
    ("op_type", "bias", "attributes"),
    [
        ("Gelu", False, {}),
        ("FastGelu", False, {}),
        ("FastGelu", True, {}),
        ("BiasGelu", True, {}),
        ("QuickGelu", False, {}),
        ("QuickGelu", False, {"alpha": 0.7}),
        ("QuickGelu", False, {"alpha": 1.0}),
    ],
)
def test_gelu(op_type: str, bias: bool, attributes: dict[str, Any]) -> None:
    more = {"b": floats(8)} if bias else {}
    check_node(op_type, {"x": 3 * floats(2, 3, 8), **more}, **attributes)


def test_gates_and_biases_without_a_kernel_on_cpus() -> None:
    data, bias = floats(2, 3, 8), floats(8)
    inputs = {"x": data, "b": bias}
    gate = run_onnxruntime(
        node_model("Gelu", {"x": (data + bias)[..., 4:]}), {"x": (data + bias)[..., 4:]}
    )["y"]
    got = run_imported(node_model("BiasSplitGelu", inputs), inputs)
    assert_agrees(got, {"y": (data + bias)[..., :4] * gate}, 2e-6)
    inputs["s"] = floats(2, 3, 8)
    got = run_imported(node_model("BiasAdd", inputs), inputs)
    assert_agrees(got, {"y": data + bias + inputs["s"]}, 2e-6)


@pytest.mark.parametrize(
    ("op_type", "shape", "skip", "beta", "bias"),
    [
        ("SkipLayerNormalization", (2, 3, 8), (2, 3, 8), True, True),
        ("SkipLayerNormalization", (2, 3, 8), (1, 3, 8), True, False),
        ("SkipLayerNormalization", (2, 3, 8), (3, 8), False, True),
        ("SkipLayerNormalization", (6, 8), (6, 8), False, False),
        ("SkipSimplifiedLayerNormalization", (2, 3, 8), (2, 3, 8), None, True),
        ("SkipSimplifiedLayerNormalization", (2, 3, 8), (1, 3, 8), None, False),
    ],
)
def test_skip_normalisations(
    op_type: str, shape: tuple[int, ...], skip: tuple[int, ...], beta: bool | None, bias: bool
) -> None:
    inputs: dict[str, Any] = {"x": floats(*shape), "s": floats(*skip), "g": floats(8)}
    if beta is not None:
        inputs["be"] = floats(8) if beta else None
    inputs["bi"] = floats(8) if bias else None
    check_node(op_type, inputs, ("y", "", "", "t"), epsilon=1e-3)


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs", "attributes"),
    [
        ("SimplifiedLayerNormalization", ["x", "g"], ("y", "i"), {}),
        ("SimplifiedLayerNormalization", ["x", "h"], ("y",), {"axis": 1, "epsilon": 0.1}),
        ("LayerNormalization", ["x", "g", "b"], ("y", "m", "i"), {"epsilon": 0.1}),
    ],
)
def test_normalisations_of_the_default_domain(
    op_type: str, inputs: list[str], outputs: tuple[str, ...], attributes: dict[str, Any]
) -> None:
    values = {"x": floats(2, 3, 8), "g": floats(8), "h": floats(3, 8), "b": floats(8)}
    given = {name: values[name] for name in inputs}
    check_node(op_type, given, outputs, domain="", **attributes)


@pytest.mark.pairs
@pytest.mark.parametrize("with_segments", [True, False])
@pytest.mark.parametrize("with_mask", [True, False])
@pytest.mark.parametrize("places", [None, 1, 2])
def test_embedding(with_segments: bool, with_mask: bool, places: int | None) -> None:
    def numbers(high: int, rows: int) -> np.ndarray[Any, np.dtype[np.int32]]:
        return RNG.integers(0, high, (rows, 4)).astype(np.int32)

    inputs = {
        "ids": numbers(10, 2),
        "segments": numbers(2, 2) if with_segments else None,
        "words": floats(10, 8),
        "positions": floats(6, 8),
        "kinds": floats(2, 8) if with_segments else None,
        "g": floats(8),
        "b": floats(8),
        "mask": numbers(2, 2) if with_mask else None,
        "places": None if places is None else numbers(6, places),
    }
    outputs = {"y": np.float32, "count": np.int32, "sum": np.float32}
    check_node("EmbedLayerNormalization", inputs, outputs, epsilon=1e-3)


@pytest.mark.parametrize(
    ("op_type", "attributes", "reason"),
    [
        ("FusedConv", {"activation": "Swirl"}, "activation is 'Swirl', accepted are Relu, Tanh"),
        ("FusedConv", {"activation": "Clip"}, r"Clip has 2 parameters, found \[\]"),
        ("FusedConv", {"activation": 3}, "'activation' is INT, accepted is STRING"),
        ("FusedConv", {"fly": 1}, "'fly' is not supported, accepted are activation"),
        ("FusedGemm", {"activation": "Clip"}, "needs bounds that FusedGemm cannot give"),
        ("Gelu", {}, "it has 2 inputs, accepted are up to 1"),
        ("SkipLayerNormalization", {}, "input 'gamma' is required"),
        ("Attention", {}, "the attribute 'num_heads' is required"),
        ("NoSuchOp", {}, "domain 'com.microsoft' has no such op here"),
    ],
)
def test_refusals_name_the_node(op_type: str, attributes: dict[str, Any], reason: str) -> None:
    inputs = {"x": floats(1, 2, 5, 5), "w": floats(2, 2, 3, 3)}
    if op_type == "FusedGemm":
        inputs = {"x": floats(3, 4), "w": floats(4, 5)}
    model = node_model(op_type, inputs, **attributes)
    with pytest.raises(UnsupportedModelError, match=rf"n \(com.microsoft.{op_type}\).*{reason}"):
        byoc_mlir.compile(model, targets=())


@pytest.mark.parametrize("shapes", [((8,), (4, 5)), ((3, 4), (17,)), ((2, 3, 4), (4, 5)), ((), ())])
@pytest.mark.parametrize("is_constant", [False, True])
def test_a_gemm_of_other_ranks_is_refused(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], is_constant: bool
) -> None:
    x, w = (floats(*shape) for shape in shapes)
    model = node_model("FusedGemm", {"x": x, "w": w}, activation="Relu")
    if is_constant:
        model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
        del model.graph.input[1]
    with pytest.raises(ByocError, match=r"'n' \(FusedGemm\): . has shape .* rank 2"):
        byoc_mlir.compile(model, targets=())
