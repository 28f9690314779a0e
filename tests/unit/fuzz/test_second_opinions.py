"""Reasons for which our results differ from ONNX Runtime's or the reference evaluator's.

For each reason of the page there is a node whose result is known by hand or from NumPy. The judge
that the reason names has another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from byoc_mlir_fuzz.oracles import as_arrays, differences, onnxruntime_answer, reference_answer
from helpers.models import ML, model_of, node, parsed
from second_opinions import WHY

import byoc_mlir
from byoc_mlir.errors import InvalidModelError, UnsupportedModelError

NAN, INF, MOST, LARGE = np.nan, np.inf, np.float32(3e38), np.float32(1.5e38)


def f32(*values: Any, shape: Sequence[int] = (-1,)) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32).reshape(shape)


@dataclass(frozen=True)
class Case:
    """Node with its inputs, and what an independent judge computes of them."""

    op: str
    model: onnx.ModelProto
    wanted: Callable[..., Any]
    """Function of the inputs: the result by hand or of NumPy."""
    feeds: Mapping[str, Any] = field(default_factory=dict[str, Any])
    other: str = "onnxruntime"
    """Judge that differs, or refuses."""


def case(op: str, signature: str, body: str, wanted: Any, other: str = "onnxruntime", **feeds: Any):
    """Returns a case of ONNX's text; `wanted` is a function of the feeds."""
    opset = feeds.pop("opset", 17)
    return Case(op, parsed(signature, body, opset=opset), wanted, feeds, other)


def _wrapped_sum(x: np.ndarray[Any, Any]) -> Any:
    return x.sum(dtype=x.dtype)


def _lstm_of_two_lengths() -> Case:
    """Returns an LSTM whose second sequence ends after one of two steps."""
    rng = np.random.default_rng(0)
    w, r, b = (rng.standard_normal(s).astype(np.float32) for s in ((1, 8, 3), (1, 8, 2), (1, 16)))
    x = rng.standard_normal((2, 2, 3)).astype(np.float32)
    lengths = np.array([2, 1], np.int32)
    nodes = [node("LSTM", "x w r b lengths", "a h", hidden_size=2)]

    def wanted(x: Any, lengths: Any) -> Any:
        last = np.zeros((1, 2, 2), np.float32)
        for entry, length in enumerate(lengths):
            h = c = np.zeros(2)
            for step in range(length):
                sums = w[0] @ x[step, entry] + r[0] @ h + b[0, :8] + b[0, 8:]
                i, o, f, update = np.split(sums, 4)
                c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(update)
                h = _sigmoid(o) * np.tanh(c)
            last[0, entry] = h
        return last

    model = model_of(nodes, {"x": x, "lengths": lengths}, {"w": w, "r": r, "b": b}, ["h"])
    return Case("LSTM", model, wanted, {"x": x, "lengths": lengths}, "reference")


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _gru_of_nan() -> Case:
    shapes = {"w": (1, 6, 3), "r": (1, 6, 2), "b": (1, 12)}
    arrays = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    x = f32(1, NAN, 2, shape=(1, 1, 3))
    model = model_of([node("GRU", "x w r b", "a h", hidden_size=2)], {"x": x}, arrays, ["h"])
    return Case("GRU", model, lambda x: np.full((1, 1, 2), NAN), {"x": x})


CASES = [
    case(
        "ArgMin",
        "(float[3] x) => (int64[1] y)",
        "y = ArgMin <axis = 0> (x)",
        lambda x: np.argmin(x, 0, keepdims=True),
        x=f32(3, NAN, 1),
    ),
    case(
        "BatchNormalization",
        "(float[1,1] x, float[1] s, float[1] b, float[1] m, float[1] v) => (float[1,1] y)",
        "y = BatchNormalization (x, s, b, m, v)",
        lambda x, s, b, m, v: (x - m) * s / np.sqrt(v + 1e-5) + b,
        x=f32(MOST, shape=(1, 1)),
        s=f32(10),
        b=f32(1),
        m=f32(MOST),
        v=f32(1),
    ),
    _gru_of_nan(),
    case(
        "GlobalMaxPool",
        "(float[1,1,2,2] x) => (float[1,1,1,1] y)",
        "y = GlobalMaxPool (x)",
        lambda x: x.max((2, 3), keepdims=True),
        x=f32(1, NAN, 5, 2, shape=(1, 1, 2, 2)),
    ),
    case(
        "Hardmax",
        "(float[1,3] x) => (float[1,3] y)",
        "y = Hardmax (x)",
        lambda x: np.eye(3, dtype=np.float32)[[np.argmax(x)]],
        x=f32(1, NAN, 5, shape=(1, 3)),
    ),
    case(
        "InstanceNormalization",
        "(float[1,1,2] x, float[1] s, float[1] b) => (float[1,1,2] y)",
        "y = InstanceNormalization (x, s, b)",
        lambda x, s, b: s * (x - x.astype(np.float64).mean()) + b,
        x=f32(LARGE, LARGE, shape=(1, 1, 2)),
        s=f32(1),
        b=f32(2),
    ),
    _lstm_of_two_lengths(),
    case(
        "LpPool",
        "(float[1,1,4] x) => (float[1,1,2] y)",
        "y = LpPool <kernel_shape = [2], strides = [2]> (x)",
        lambda x: np.sqrt((x.reshape(1, 1, 2, 2) ** 2).sum(-1)),
        "reference",
        x=f32(1, NAN, 3, 4, shape=(1, 1, 4)),
        opset=18,
    ),
    case(
        "MaxRoiPool",
        "(float[1,1,2,2] x, float[1,5] roi) => (float[1,1,1,1] y)",
        "y = MaxRoiPool <pooled_shape = [1, 1]> (x, roi)",
        lambda x, roi: x.max((2, 3), keepdims=True),
        x=f32(1, NAN, 5, 2, shape=(1, 1, 2, 2)),
        roi=f32(0, 0, 0, 1, 1, shape=(1, 5)),
    ),
    case(
        "MaxUnpool",
        "(float[1,1,4] x) => (float[1,1,4] y)",
        """p, i = MaxPool <kernel_shape = [2], strides = [2]> (x)
        y = MaxUnpool <kernel_shape = [2], strides = [2]> (p, i)""",
        lambda x: f32(0, NAN, 4, 0, shape=(1, 1, 4)),
        x=f32(1, NAN, 4, 3, shape=(1, 1, 4)),
    ),
    case(
        "OptionalGetElement",
        "(float[2] x) => (float[2] y)",
        "o = Optional (x) y = OptionalGetElement (o)",
        lambda x: x,
        "reference",
        x=f32(1, 2),
    ),
    case(
        "Pow",
        "(int64[1] x, int64[1] e) => (int64[1] y)",
        "y = Pow (x, e)",
        np.power,
        x=np.array([3]),
        e=np.array([41]),
    ),
    *(
        case(
            op,
            "(int32[3] x) => (int32 y)",
            f"y = {op} <keepdims = 0> (x)",
            wanted,
            other,
            x=np.array(x, np.int32),
        )
        for op, x, wanted, other in (
            ("ReduceL1", [2**31 - 1, 1, 1], _wrapped_sum, "onnxruntime"),
            ("ReduceL2", [65536, 65536, 0], lambda x: np.int32((2 * 65536**2) ** 0.5), "reference"),
            ("ReduceMean", [2**31 - 1, 1, 0], lambda x: np.int32(-(2**31) / 3), "onnxruntime"),
        )
    ),
    case(
        "QLinearMatMul",
        "(uint8[1,1] a, uint8[1,1] b, float s, float t, float u, uint8 z) => (uint8[1,1] y)",
        "y = QLinearMatMul (a, s, z, b, t, z, u, z)",
        lambda s, t, u, a, b, z: np.rint(np.float32(125 * 107) * (s * t / u)).reshape(1, 1),
        "reference",
        **dict(zip("stu", f32(0.502, 0.012, 0.642), strict=True)),
        a=np.array([[125]], np.uint8),
        b=np.array([[107]], np.uint8),
        z=np.uint8(0),
    ),
    case(
        "ReduceSum",
        "(int32[3] x) => (int32 y)",
        "y = ReduceSum <keepdims = 0> (x)",
        _wrapped_sum,
        x=np.array([2**31 - 1, 1, 1], np.int32),
    ),
    case(
        "Resize",
        "(float[1,1,2] x) => (float[1,1,3] y)",
        """s = Constant <value = int64[3] {1, 1, 3}> ()
        y = Resize <mode = "linear", coordinate_transformation_mode = "align_corners">
        (x, , , s)""",
        lambda x: f32(INF, INF, 1, shape=(1, 1, 3)),
        "reference",
        x=f32(INF, 1, shape=(1, 1, 2)),
    ),
    case(
        "RoiAlign",
        "(float[1,1,2,2] x, float[1,4] roi, int64[1] of) => (float[1,1,1,1] y)",
        """y = RoiAlign <mode = "max", output_height = 1, output_width = 1, sampling_ratio = 2,
        coordinate_transformation_mode = "output_half_pixel"> (x, roi, of)""",
        lambda x, roi, of: np.full((1, 1, 1, 1), NAN, np.float32),
        x=f32(1, NAN, 5, 2, shape=(1, 1, 2, 2)),
        roi=f32(0, 0, 1, 1, shape=(1, 4)),
        of=np.array([0]),
    ),
    case(
        "Shrink",
        "(int32[2] x) => (int32[2] y)",
        "y = Shrink <lambd = 0.0, bias = 1.0> (x)",
        lambda x: np.where(x > 0, x - np.int32(1), x + np.int32(1)),
        x=np.array([2**24 + 2, -(2**31)], np.int32),
    ),
    case(
        f"{ML}.LinearRegressor",
        "(float[1,2] x) => (float[1,1] y)",
        f"y = {ML}.LinearRegressor <coefficients = [2.0, 3.0]> (x)",
        lambda x: x @ f32(2, 3, shape=(2, 1)),
        "reference",
        x=f32(1, 2, shape=(1, 2)),
    ),
    case(
        f"{ML}.Normalizer",
        "(float[1,3] x) => (float[1,3] y)",
        f'y = {ML}.Normalizer <norm = "MAX"> (x)',
        lambda x: x / x.max(1, keepdims=True),
        x=f32(1, NAN, 5, shape=(1, 3)),
    ),
]
_JUDGES = {"onnxruntime": onnxruntime_answer, "reference": reference_answer}


def ours(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
    with byoc_mlir.compile(model, (), threads=1, cache=False, fallback="allow") as executable:
        return {name: np.array(value) for name, value in as_arrays(executable.run(feeds)).items()}


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.op)
def test_a_judge_by_hand_agrees_with_us_and_another_differs(one: Case) -> None:
    with np.errstate(all="ignore"):
        got = ours(one.model, one.feeds)
        (name,) = got
        wanted = np.asarray(one.wanted(*one.feeds.values())).astype(got[name].dtype)
        assert not differences(got, {name: wanted})
        try:
            other = _JUDGES[one.other](one.model, one.feeds)
        except Exception:  # it refuses the node
            return
        assert differences(other, {name: wanted}), other


WINDOWS = {
    "Conv": "(float[1,1,2] x, float[1,1,5] w) => (y)",
    "ConvInteger": "(uint8[1,1,2] x, uint8[1,1,5] w) => (y)",
    "com.microsoft.FusedConv": "(float[1,1,2] x, float[1,1,5] w) => (y)",
}


@pytest.mark.parametrize("op", WINDOWS)
def test_windows_larger_than_the_padded_data_are_refused(op: str) -> None:
    with pytest.raises((InvalidModelError, UnsupportedModelError), match=r"window|kernel"):
        byoc_mlir.compile(parsed(WINDOWS[op], f"y = {op} (x, w)"), (), cache=False)


def test_a_quantised_window_larger_than_the_padded_data_is_refused() -> None:
    model = parsed(
        "(uint8[1,1,2] x, uint8[1,1,5] w, float s, uint8 z) => (y)",
        "y = QLinearConv (x, s, z, w, s, z, s, z)",
    )
    with pytest.raises((InvalidModelError, UnsupportedModelError), match=r"window|kernel"):
        byoc_mlir.compile(model, (), cache=False)


def test_sums_of_the_largest_floats_depend_on_the_order() -> None:
    model = parsed("(float[1,1,3] x, float[1,1,3] w) => (float[1,1,1] y)", "y = Conv (x, w)")
    feeds = {"x": f32(MOST, MOST, -MOST, shape=(1, 1, 3)), "w": np.ones((1, 1, 3), np.float32)}
    assert ours(model, feeds)["y"].item() in (MOST, INF)


def test_blackman_windows_are_those_of_numpy_up_to_rounding() -> None:
    model = parsed(
        "() => (float[9] y)",
        "n = Constant <value_int = 9> () y = BlackmanWindow <periodic = 0> (n)",
    )
    np.testing.assert_allclose(ours(model, {})["y"], np.blackman(9), atol=1e-6)


def test_an_infinity_in_a_transform_is_multiplied_by_sines_that_are_0() -> None:
    model = parsed("(float[1,4,1] x) => (float[1,4,2] y)", "y = DFT <axis = 1> (x)")
    x = f32(1, INF, 0, 0, shape=(1, 4, 1))
    with np.errstate(all="ignore"):
        y = ours(model, {"x": x})["y"][0]
        wanted = np.fft.fft(x[0, :, 0])
    finite = np.isfinite(wanted.real) & np.isfinite(y[:, 0])
    np.testing.assert_allclose(y[finite, 0], wanted.real[finite])
    assert not np.isfinite(y[0, 0])


def test_a_feature_vectorizer_whose_inputs_are_narrower_is_refused() -> None:
    model = parsed(
        "(float[1,2] x) => (float[1,3] y)",
        f"y = {ML}.FeatureVectorizer <inputdimensions = [3]> (x)",
    )
    with pytest.raises((InvalidModelError, UnsupportedModelError)):
        byoc_mlir.compile(model, (), cache=False)


def test_onnx_24_has_no_sequences_and_optionals_of_bfloat16() -> None:
    for op in ("SequenceLength", "Optional"):
        types = [one.allowed_type_strs for one in onnx.defs.get_schema(op, 24).type_constraints]
        assert not any("bfloat16" in text for one in types for text in one)


def test_each_reason_of_the_page_has_a_test() -> None:
    others = {"BlackmanWindow", "DFT", "Optional", "SequenceLength", "QLinearConv"}
    tested = {one.op for one in CASES} | WINDOWS.keys() | others | {f"{ML}.FeatureVectorizer"}
    assert WHY.keys() <= tested
