"""NaN, infinities, zeros of both signs, denormals: as in ONNX, fused into primitives and alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

import numpy as np
import pytest
from dnnl_models import model, node, scalar
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto
from onnx.reference import ReferenceEvaluator

import byoc_mlir
from byoc_mlir.backends.dnnl.choices import Layout
from byoc_mlir.testing.reference import random_inputs, run_onnxruntime

Array = NDArray[np.float32]
Oracle = Callable[[ModelProto, Array], Array]

_VALUES = np.array(
    [np.nan, np.inf, -np.inf, 0, -0.0, 1e-40, -1e-40, 1e-30, -1e-30, 5, -5, 90, -90, 1, -1, 0.3],
    np.float32,
)

_ACTIVATIONS: Mapping[str, str] = {
    **dict.fromkeys(["Relu", "Sigmoid", "Tanh", "Elu", "Abs", "Exp", "Sqrt", "Mish"], "c"),
    **dict.fromkeys(["HardSwish", "HardSigmoid", "Gelu", "LeakyRelu"], "c"),
    "Clip": "c low high",
    "PRelu": "c slope",
}
_CONSTANTS = {"low": scalar(-4), "high": scalar(4), "slope": np.array([0.1], np.float32)}


def _reference(built: ModelProto, x: Array) -> Array:
    with np.errstate(all="ignore"):
        results = cast("list[Array]", ReferenceEvaluator(built).run(None, {"x": x}))
    return results[0]


def _onnxruntime(built: ModelProto, x: Array) -> Array:
    """Returns ONNX Runtime's result, for ops in which the reference evaluator ignores NaN or
    overflows.
    """
    return run_onnxruntime(built, {"x": x})["y"]


def _check(built: ModelProto, x: Array, oracle: Oracle = _reference) -> None:
    """Compares special values exactly, and finite ones with a tolerance."""
    with byoc_mlir.compile(built, targets=("dnnl",), fallback="allow") as executable:
        for inputs in (x, np.where(np.isfinite(x), x, np.float32(2))):
            found = executable.run({"x": inputs})["y"]
            np.testing.assert_allclose(found, oracle(built, inputs), rtol=3e-6, atol=3e-6)


def _used(inputs: str) -> dict[str, Any]:
    return {name: value for name, value in _CONSTANTS.items() if name in inputs.split()}


@pytest.mark.values
@pytest.mark.parametrize("activation", _ACTIVATIONS)
@pytest.mark.parametrize("shape", [(1, 8, 4, 4), (2, 16, 3, 5)])
def test_behind_convolutions(activation: str, shape: tuple[int, ...]) -> None:
    inputs, channels = _ACTIVATIONS[activation], shape[1]
    nodes = [node("Conv", "x w", "c", group=channels), node(activation, inputs)]
    weights = {"w": np.ones((channels, 1, 1, 1), np.float32), **_used(inputs)}
    _check(model(nodes, {"x": shape}, weights), np.resize(_VALUES, shape))


@pytest.mark.parametrize("activation", ["Relu", "Clip", "Sigmoid", "Exp"])
@pytest.mark.parametrize("shape", [(1, 1, 8), (1, 1, 8, 8)])
def test_behind_convolutions_of_one_channel(activation: str, shape: tuple[int, ...]) -> None:
    """Checks convolutions that become matmuls, which have separate post-ops."""
    inputs = _ACTIVATIONS[activation]
    nodes = [node("Conv", "x w", "c"), node(activation, inputs)]
    weights = {"w": np.ones((1,) * len(shape), np.float32), **_used(inputs)}
    _check(model(nodes, {"x": shape}, weights), np.resize(_VALUES, shape))


@pytest.mark.parametrize("activation", _ACTIVATIONS)
def test_behind_products(activation: str) -> None:
    inputs = _ACTIVATIONS[activation]
    nodes = [node("MatMul", "x w", "c"), node(activation, inputs)]
    weights = {"w": np.ones((1, 24), np.float32), **_used(inputs)}
    _check(model(nodes, {"x": (16, 1)}, weights), _VALUES.reshape(16, 1))


@pytest.mark.parametrize("activation", ["Relu", "Clip", "Sigmoid", "Tanh", "Abs", "Exp"])
def test_alone_between_convolutions(activation: str) -> None:
    """Checks activations whose operand has a second user, so that they are no post-op."""
    inputs = _ACTIVATIONS[activation]
    nodes = [
        node("Conv", "x w", "c", group=16),
        node(activation, inputs, "a"),
        node("Add", "a c", "s"),
        node("Conv", "s w", group=16),
    ]
    weights = {"w": np.ones((16, 1, 1, 1), np.float32), **_used(inputs)}
    shape = (1, 16, 16, 16)
    _check(model(nodes, {"x": shape}, weights), np.resize(_VALUES, shape))


@pytest.mark.parametrize("after", ["Relu", "Clip", "Sigmoid"])
def test_behind_sums(after: str) -> None:
    """Checks a sum that is computed in place of one of its operands."""
    inputs = _ACTIVATIONS[after].replace("c", "s", 1)
    nodes = [
        node("Conv", "x w", "r", group=16),
        node("Conv", "r w", "c", group=16),
        node("Add", "c r", "s"),
        node(after, inputs),
    ]
    weights = {"w": np.ones((16, 1, 1, 1), np.float32), **_used(inputs)}
    shape = (1, 16, 8, 8)
    _check(model(nodes, {"x": shape}, weights), np.resize(_VALUES, shape))


_ROWS = np.array(
    [
        [1, np.nan, 2, 3],
        [np.inf, 1, 2, 3],
        [-np.inf, 1, 2, 3],
        [-np.inf] * 4,
        [np.inf, np.inf, 1, 2],
        [1, 2, 3, -1e30],
        [88, 2, -88, 0],
    ],
    np.float32,
)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax(op: str, axis: int) -> None:
    x = _ROWS if axis == 1 else np.ascontiguousarray(_ROWS.T)
    _check(model([node(op, "x", axis=axis)], {"x": x.shape}), x, _onnxruntime)


@pytest.mark.parametrize("layout", get_args(Layout))
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_softmax_in_any_layout(axis: int, layout: str) -> None:
    """Checks all layouts, also with an axis that is blocked and whose last block is not full."""
    x = np.zeros((2, 20, 3, 5), np.float32)
    x[0, 17, 1, 2], x[1, 3, 2, 4] = np.nan, np.inf
    built = model([node("Softmax", "x", axis=axis)], {"x": x.shape})
    targets = (f"dnnl{{layout={layout}}}",)
    with byoc_mlir.compile(built, targets, fallback="allow", prune="off") as executable:
        found = executable.run({"x": x})["y"]
    np.testing.assert_allclose(found, _onnxruntime(built, x), rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize(
    "op",
    [
        node("AveragePool", "x", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "x"),
        node("LayerNormalization", "x scale", axis=-1),
        node("LRN", "x", size=3, bias=1.0),
    ],
    ids=["average", "global", "layer-norm", "lrn"],
)
def test_sums_spread_nan(op: NodeProto) -> None:
    x = np.ones((1, 8, 4, 4), np.float32)
    x[0, :, 0, 0], x[0, 3, 2, 2] = np.nan, 7
    weights = {"scale": np.ones(4, np.float32)} if "scale" in op.input else {}
    _check(model([op], {"x": x.shape}, weights), x, _onnxruntime)


def _max_pool(x: Array, size: int, stride: int, pad: int) -> Array:
    """Returns the maximum of windows of `size` elements along each axis; NaN if an element is
    NaN."""
    spatial = tuple(range(2, x.ndim))
    widths = [(0, 0), (0, 0), *[(pad, pad)] * len(spatial)]
    whole = np.pad(x, widths, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(whole, [size] * len(spatial), spatial)
    every = (slice(None), slice(None), *[slice(None, None, stride)] * len(spatial))
    return windows[every].max(axis=tuple(range(x.ndim, 2 * x.ndim - 2)))


@pytest.mark.pairs
@pytest.mark.parametrize("channels", [3, 12, 32])
@pytest.mark.parametrize(
    ("rank", "size", "stride", "pad"), [(1, 3, 2, 1), (2, 3, 1, 1), (3, 2, 2, 0)]
)
@pytest.mark.parametrize("is_behind", [False, True])
def test_max_pools(
    channels: int, rank: int, size: int, stride: int, pad: int, is_behind: bool
) -> None:
    """Checks the layouts of plain pools, and of pools after convolutions."""
    shape = (2, channels, *(7, 6, 5)[:rank])
    x = np.resize(np.concatenate([_VALUES, np.arange(97, dtype=np.float32)]), shape)
    x[0, 0], x[0, 1] = -np.inf, np.nan
    lists: dict[str, Any] = {
        "kernel_shape": [size] * rank,
        "strides": [stride] * rank,
        "pads": [pad] * 2 * rank,
    }
    nodes = [node("Conv", "x w", "c", group=channels)] if is_behind else []
    nodes.append(node("MaxPool", "c" if is_behind else "x", **lists))
    weights = {"w": np.ones((channels, 1, *[1] * rank), np.float32)} if is_behind else {}
    _check(model(nodes, {"x": shape}, weights), x, lambda _, x: _max_pool(x, size, stride, pad))


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_extremes_of_two_tensors(op: str) -> None:
    nodes = [node("Conv", "x w", "c", group=16), node(op, "c other")]
    weights = {"w": np.ones((16, 1, 1, 1), np.float32), "other": np.ones((16, 1, 1), np.float32)}
    shape = (1, 16, 8, 8)
    _check(model(nodes, {"x": shape}, weights), np.resize(_VALUES, shape))


def test_weights_that_are_not_finite() -> None:
    """Checks weights that determine the result for all inputs."""
    weight = np.ones((8, 1, 1, 1), np.float32)
    weight[:3, 0, 0, 0] = np.nan, np.inf, -np.inf
    nodes = [node("Conv", "x w", "c", group=8), node("Clip", "c low high")]
    built = model(nodes, {"x": (1, 8, 3, 3)}, {"w": weight, **_used("low high")})
    _check(built, np.ones((1, 8, 3, 3), np.float32))


def test_relu_stays_a_post_op() -> None:
    """Checks that NaN-safety costs runs on finite values nothing."""
    nodes = [node("Conv", "x w", "c"), node("Relu", "c")]
    built = model(nodes, {"x": (1, 16, 8, 8)}, {"w": (16, 16, 1, 1)})
    with byoc_mlir.compile(built, targets=("dnnl",)) as executable:
        rows = {row.node: row.composite for row in executable.report()}
        executable.run(random_inputs(built))
    assert set(rows.values()) == {"dnnl.conv2d_relu"}
