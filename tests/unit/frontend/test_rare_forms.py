"""Forms of ops that ONNX allows and exporters seldom write, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx_models import model_of, node

import byoc_mlir
from byoc_mlir.errors import InvalidInputError, UnsupportedModelError
from byoc_mlir.frontend.ops.activations import DEFAULTS
from byoc_mlir.testing.reference import run_onnxruntime

RNG = np.random.default_rng(0)
FLOAT = TensorProto.FLOAT
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULT = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
ACTIVATIONS = (
    *("Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh"),
    *("Sigmoid", "Softplus", "Softsign", "Tanh", "ThresholdedRelu"),
)


def _floats(*shape: int) -> Any:
    return RNG.standard_normal(shape, np.float32)


def _agrees(model: ModelProto, feeds: dict[str, Any], tolerance: float = 1e-5) -> None:
    model.ir_version = 8
    for name, wanted in run_onnxruntime(model, feeds).items():
        found = byoc_mlir.compile(model, ()).run(feeds)[name]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=tolerance, strict=True)


@pytest.mark.values
@pytest.mark.parametrize("batch", [2, "n"])
@pytest.mark.parametrize("shape", [(4,), (1, 1, 4), (3, 4), (1, 3, 4), (2, 3, 4), (3, 1)])
def test_layer_normalization_with_a_scale_of_more_dimensions(
    shape: tuple[int, ...], batch: int | str
) -> None:
    x, scale, bias = _floats(2, 3, 4), _floats(*shape), _floats(4)
    nodes = [
        node("LayerNormalization", "x scale bias", "y"),
        node("LayerNormalization", "x scale", "z"),
        node("LayerNormalization", "x bias scale", "w"),
    ]
    inputs = [("x", FLOAT, (batch, 3, 4)), ("scale", FLOAT, shape), ("bias", FLOAT, (4,))]
    model = model_of(nodes, inputs, ["y", "z", "w"])
    deviation = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    normal = (x - x.mean(-1, keepdims=True)) / deviation
    found = byoc_mlir.compile(model, ()).run({"x": x, "scale": scale, "bias": bias})
    np.testing.assert_allclose(found["y"], normal * scale + bias, atol=1e-5)
    np.testing.assert_allclose(found["z"], normal * scale, atol=1e-5)
    np.testing.assert_allclose(found["w"], normal * bias + scale, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 5)])
def test_batch_normalization_with_statistics_per_element(shape: tuple[int, ...]) -> None:
    values = {name: _floats(*shape[1:]) for name in ("scale", "bias", "mean")}
    values["variance"] = abs(_floats(*shape[1:]))
    constants = [numpy_helper.from_array(value, name) for name, value in values.items()]
    nodes = [node("BatchNormalization", "x scale bias mean variance", "y", spatial=0)]
    model = model_of(nodes, [("x", FLOAT, shape)], opset=7, initializers=constants)
    _agrees(model, {"x": _floats(*shape)})


def test_batch_normalization_of_old_opsets_has_one_output() -> None:
    constants = [numpy_helper.from_array(abs(_floats(3)), name) for name in "abcd"]
    nodes = [node("BatchNormalization", "x a b c d", "y m v s t", name="here")]
    model = model_of(nodes, [("x", FLOAT, (2, 3, 4))], opset=9, initializers=constants)
    with pytest.raises(UnsupportedModelError, match="here"):
        byoc_mlir.compile(model, ())


@pytest.mark.parametrize("padding", ["border", "reflection", "zeros"])
@pytest.mark.parametrize("align", [0, 1])
def test_cubic_samples_around_the_border(padding: str, align: int) -> None:
    attributes: dict[str, Any] = {"padding_mode": padding, "align_corners": align}
    nodes = [node("GridSample", "x grid", "y", mode="cubic", **attributes)]
    inputs = [("x", FLOAT, (2, 3, 5, 4)), ("grid", FLOAT, (2, 6, 7, 2))]
    grid = RNG.uniform(-2, 2, (2, 6, 7, 2)).astype(np.float32)
    _agrees(model_of(nodes, inputs), {"x": _floats(2, 3, 5, 4), "grid": grid}, 1e-4)


def _recurrent(op: str, x: Sequence[int | str], inputs: str = "x w r", **more: Any) -> ModelProto:
    weights = [
        numpy_helper.from_array(_floats(2 if "direction" in more else 1, GATES[op] * 2, size), name)
        for name, size in (("w", 3), ("r", 2))
    ]
    names = [name.strip("-") for name in inputs.split()]
    own: NodeProto = helper.make_node(op, names, ["y"], "rec", hidden_size=2, **more)
    infos = [("x", FLOAT, x), ("lens", TensorProto.INT32, (2,))][: 1 + ("lens" in names)]
    return model_of([own], infos, initializers=weights)


@pytest.mark.values
@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(op: str, name: str) -> None:
    count = len(DEFAULT[op]) * 2
    numbers: dict[str, Any] = {
        f"activation_{parameter}": [0.3 + 0.1 * at for at in range(count)]
        for at, parameter in enumerate(("alpha", "beta"))
        if len(DEFAULTS.get(name.lower(), ())) > at
    }
    listed = [name] * count
    model = _recurrent(op, (2, 2, 3), direction="bidirectional", activations=listed, **numbers)
    _agrees(model, {"x": _floats(2, 2, 3) / 8})


@pytest.mark.parametrize("op", GATES)
def test_numbers_go_to_the_activations_that_have_some(op: str) -> None:
    listed = (["LeakyRelu", "Tanh", "Affine"][-len(DEFAULT[op]) :] + ["ScaledTanh"] * 3)[
        : 2 * len(DEFAULT[op])
    ]
    model = _recurrent(
        *(op, (2, 2, 3)),
        direction="bidirectional",
        activations=listed,
        activation_alpha=[0.1, 0.2, 0.3, 0.4, 0.5],
        activation_beta=[0.6, 0.7, 0.8, 0.9],
    )
    _agrees(model, {"x": _floats(2, 2, 3)})


@pytest.mark.parametrize("op", GATES)
def test_activations_that_do_not_exist_are_refused(op: str) -> None:
    for at in range(len(DEFAULT[op])):
        listed = [*DEFAULT[op][:at], "Nonsense", *DEFAULT[op][at + 1 :]]
        with pytest.raises(
            UnsupportedModelError, match=r"(?s)rec.*'Nonsense'.*accepted are affine"
        ):
            byoc_mlir.compile(_recurrent(op, (2, 2, 3), activations=listed), ())


@pytest.mark.values
@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("steps", [4, "t"])
def test_sequences_have_at_most_all_steps(op: str, steps: int | str) -> None:
    model = _recurrent(op, (steps, 2, 3), "x w r - lens")
    executable, x = byoc_mlir.compile(model, ()), _floats(4, 2, 3)
    for lengths in ([4, 2], [0, 4]):
        feeds = {"x": x, "lens": np.array(lengths, np.int32)}
        model.ir_version = 8
        wanted = run_onnxruntime(model, feeds)["y"]
        np.testing.assert_allclose(executable.run(feeds)["y"], wanted, atol=1e-5)
    for bad in (5, -1, 2**31 - 1):
        feeds = {"x": x, "lens": np.array([4, bad], np.int32)}
        with pytest.raises(InvalidInputError, match=r"rec.*sequence_lens"):
            executable.run(feeds)


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize(
    ("kernel", "strides"),
    [([4, 4], [3, 3]), ([3, 3], [2, 9]), ([2, 2], [1 << 40, 3]), ([1, 2], [99, 1])],
)
def test_pools_whose_strides_or_windows_are_longer_than_the_data(
    op: str, kernel: list[int], strides: list[int]
) -> None:
    pool = node(op, "x", "y", kernel_shape=kernel, strides=strides)
    model = model_of([pool], [("x", FLOAT, (2, 3, 2, 2))], ["y"])
    _agrees(model, {"x": _floats(2, 3, 2, 2)})
