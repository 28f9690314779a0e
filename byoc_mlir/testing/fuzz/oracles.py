"""Who says what a model computes: ONNX Runtime, and ONNX's reference evaluator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from importlib.util import find_spec
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from byoc_mlir.errors import ToolchainError
from byoc_mlir.testing.fuzz.case import Array, Feeds
from byoc_mlir.testing.fuzz.graphs import ops_in
from byoc_mlir.testing.fuzz.values import is_float

Answer: TypeAlias = Mapping[str, Array]
"""The outputs by name."""

Oracle: TypeAlias = Callable[[onnx.ModelProto, Feeds], Answer]


def require_onnxruntime() -> None:
    """Checks that the first oracle is there.

    Raises:
        ToolchainError: it is not; the message says what to install.
    """
    if find_spec("onnxruntime") is None:
        raise ToolchainError(
            "the fuzzer compares with ONNX Runtime, which is not installed; run"
            " pip install onnxruntime, or install byoc_mlir[test]"
        )


def onnxruntime_answer(model: onnx.ModelProto, feeds: Feeds) -> Answer:
    """The outputs as ONNX Runtime has them."""
    from byoc_mlir.testing.reference import run_onnxruntime

    return run_onnxruntime(model, feeds)


def reference_answer(model: onnx.ModelProto, feeds: Feeds) -> Answer:
    """The outputs as the reference evaluator has them."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        values = cast("Sequence[Any]", ReferenceEvaluator(model).run(None, dict(feeds)))
    outputs = zip(model.graph.output, map(np.asarray, values), strict=True)
    return {output.name: _as_declared(output, value) for output, value in outputs}


def _as_declared(output: onnx.ValueInfoProto, value: Array) -> Array:
    """A number in the type that the model says: numpy's promotion gives others."""
    declared = output.type.tensor_type.elem_type
    if not declared or value.dtype == np.bool_:
        return value
    dtype = onnx.helper.tensor_dtype_to_np_dtype(declared)
    both_integers = np.issubdtype(value.dtype, np.integer) and np.issubdtype(dtype, np.integer)
    both_floats = is_float(value.dtype) and is_float(dtype)
    return value.astype(dtype) if both_integers or both_floats else value


ORACLES: Mapping[str, Oracle] = {
    "onnxruntime": onnxruntime_answer,
    "reference": reference_answer,
}


def knows(name: str, model: onnx.ModelProto) -> bool:
    """Whether an oracle is right about a model of these ops, where it gives an answer."""
    ops = ops_in(model.graph)
    opset = next((entry.version for entry in model.opset_import if not entry.domain), 0)
    if name == "reference" and any(opset < _REFERENCE_SINCE.get(op, 0) for op in ops):
        return False
    if "Gemm" in ops and name in _wrong_about_gemm(model):
        return False
    return ops.isdisjoint(_WRONG[name])


def _wrong_about_gemm(model: onnx.ModelProto) -> Iterator[str]:
    """The oracles that are wrong about a product of a model.

    The reference evaluator has integers in double precision, ONNX Runtime takes `beta` for 1 where
    the sums have no terms.
    """
    graph = shape_inference.infer_shapes(model).graph
    types = {
        tensor.name: helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in graph.initializer
    }
    types |= {value.name: value for value in (*graph.input, *graph.value_info)}
    for node in graph.node:
        if node.op_type != "Gemm" or node.input[0] not in types:
            continue
        first = types[node.input[0]].type.tensor_type
        if first.elem_type not in _FLOATS:
            yield "reference"
        if any(dim.HasField("dim_value") and not dim.dim_value for dim in first.shape.dim):
            yield "onnxruntime"


_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)

_WRONG_IN_REFERENCE = frozenset(
    (
        "AffineGrid",  # always in single precision
        "BatchNormalization",  # of opset 9, as if it was trained
        "LRN",  # the last channel of a window is left out
        "SequenceInsert",  # at the end it inserts at the start
        *("Optional", "OptionalGetElement"),  # the tensor becomes a list of one
        *("LSTM", "GRU", "RNN"),  # lengths of sequences and peepholes are ignored
        "GlobalMaxPool",  # of three spatial axes one is kept
        *("MaxPool", "AveragePool"),  # pads that differ
        "Loop",  # what is scanned is joined, not stacked
        *("LpNormalization", "LpPool", "GlobalLpPool"),  # odd powers keep the sign
        "ai.onnx.ml.OneHotEncoder",  # a fraction is no category, in ONNX Runtime it is cut off
        "ai.onnx.ml.LinearClassifier",  # without intercepts the scores are not-a-numbers
        *("QLinearMatMul", "QLinearConv"),  # in single, then in double precision: halves move
    )
)
_REFERENCE_SINCE = {
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), 13),  # of one axis, not of rows
    "RoiAlign": 16,  # half a pixel away
}
"""The opset whose version of an op the reference evaluator has for older ones, too."""
_WRONG: Mapping[str, Set[str]] = {
    "reference": _WRONG_IN_REFERENCE,
    "onnxruntime": {"NonZero"},  # of scalars, as if they had an axis
}


def finite_only(name: str, got: Answer, want: Answer, ops: Set[str]) -> Answer:
    """What is got, as an oracle says where either is not finite, if that multiplies infinities.

    Beside an infinity the oracles multiply it by zero, in elements that do not count: in
    interpolations, slopes of zeros, and the reference evaluator in the holes of dilated windows.
    ONNX Runtime subtracts from the sum of a window what leaves it, multiplies the mean of a
    normalisation by its scale, takes roots of variances that rounding made negative, says that the
    mean of nothing is 0, and loses not-a-numbers in recurrent layers.
    """
    if ops.isdisjoint(_INTERPOLATING | _SPREADING[name]):
        return got
    return {name: _finite_only(got[name], value) for name, value in want.items() if name in got}


_INTERPOLATING = frozenset(
    (
        *("RoiAlign", "GridSample", "Resize", "Upsample", "DeformConv", "PRelu"),
        *("DFT", "STFT"),  # by zeros of the sine
        "Det",  # by elimination, in one order or another
    )
)
_SPREADING: Mapping[str, Set[str]] = {
    "reference": {"Conv", "ConvTranspose"},
    "onnxruntime": {
        *("LRN", "BatchNormalization", "MeanVarianceNormalization", "ReduceMean"),
        *("LSTM", "GRU", "RNN"),
    },
}


def _finite_only(got: Array, want: Array) -> Array:
    if got.shape != want.shape or got.dtype != want.dtype or not is_float(want.dtype):
        return got
    one, two = got.astype(np.float64), want.astype(np.float64)
    return np.where(np.isfinite(one) & np.isfinite(two), got, want)


def differences(got: Answer, want: Answer, slack: Answer | None = None) -> Mapping[str, str]:
    """The outputs in which two answers differ so that it counts, each with the first difference.

    Integers and booleans must be equal, floats close in the measure of their type; not-a-numbers
    and infinities stand at the same places. `slack` is how far each element may be off beyond that.
    """
    found: dict[str, str] = {}
    for name, expected in want.items():
        more = None if slack is None else slack.get(name)
        reason = _difference(got[name], expected, more) if name in got else "it is missing"
        if reason:
            found[name] = f"output {name}: {reason}"
    return found


def _difference(got: Array, want: Array, slack: Array | None) -> str:
    if got.dtype != want.dtype:
        return f"its type is {got.dtype}, expected is {want.dtype}"
    if got.shape != want.shape:
        return f"its shape is {got.shape}, expected is {want.shape}"
    if not is_float(want.dtype):
        wrong = got != want
        if slack is not None:
            wrong &= slack == 0
    else:
        wrong = ~_close(got, want, 0.0 if slack is None else slack)
    if not wrong.any():
        return ""
    at = tuple(int(index) for index in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size} differ, at {at} it is {got[at]}, expected is {want[at]}"


_TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-7}
"""Relative, by type. In double precision some functions of the oracles are short of it."""


def _close(got: Array, want: Array, slack: Any) -> Array:
    tolerance = _TOLERANCE[want.dtype.name]
    one, two = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(two)
    largest = np.abs(two[finite]).max(initial=0.0)
    smallest = float(ml_dtypes.finfo(want.dtype).smallest_normal)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(one - two) <= 5 * tolerance * np.abs(two) + tolerance * largest + smallest
        near |= np.abs(one - two) <= slack
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    return np.where(
        finite & np.isfinite(one), near, same | (np.isinf(slack) if slack is not None else False)
    )


def slack_of(oracle: Oracle, model: onnx.ModelProto, feeds: Feeds, answer: Answer) -> Answer:
    """How far the oracle's own answer moves when the model's numbers do by a rounding error.

    Infinite where it is finite only for some of them. A model of one node has none, recurrent
    layers, windows and normalisations of narrow types aside: its answer is to be right.
    """
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    least = _APPROXIMATE if any(node.op_type in _OF_UNIT for node in nodes) else 0.0
    share = 0.0
    if oracle is reference_answer:
        share = _statistics_error(nodes, [value.dtype for value in feeds.values()])
    slack = {
        name: np.full(value.shape, least + share * _largest(value)) + _beyond_double(nodes, value)
        for name, value in answer.items()
    }
    if len(nodes) < 2:
        return slack
    for number in range(4):
        moved = _moved_answer(oracle, model, feeds, number)
        for name, value in moved.items():
            if name in slack and value.shape == slack[name].shape:
                slack[name] = np.maximum(slack[name], _distance(value, answer[name]))
    return {name: 10 * value for name, value in slack.items()}


_OF_UNIT = frozenset((*("LSTM", "GRU", "RNN"), *("BlackmanWindow", "HammingWindow", "HannWindow")))
"""Ops that compute small results from terms of about one."""
_APPROXIMATE = 1e-7
"""How far off those are, however small they are."""


def apart(one: Answer, other: Answer) -> Answer:
    """How far two oracles are from each other, twice."""
    return {
        name: 2 * _distance(value, other[name])
        for name, value in one.items()
        if name in other and value.shape == other[name].shape
    }


def _statistics_error(nodes: Sequence[onnx.NodeProto], dtypes: Sequence[np.dtype[Any]]) -> float:
    """How far off means and deviations are, in the measure of their largest.

    The reference evaluator has them in the type of the data, whatever the type they are given in.
    """
    if all(node.op_type != "LayerNormalization" for node in nodes):
        return 0.0
    return max((_TOLERANCE[dtype.name] for dtype in dtypes if is_float(dtype)), default=0.0)


def _beyond_double(nodes: Sequence[onnx.NodeProto], value: Array) -> Array:
    """One where an oracle's mean of integers, computed in double precision, has lost digits."""
    if value.dtype.kind not in "iu" or all(node.op_type != "ReduceMean" for node in nodes):
        return np.zeros(value.shape)
    return (np.abs(value.astype(np.float64)) > 1 << 53).astype(np.float64)


def _largest(array: Array) -> float:
    values = np.abs(array.astype(np.float64)) if is_float(array.dtype) else np.zeros(0)
    return values[np.isfinite(values)].max(initial=0.0)


def _distance(one: Array, two: Array) -> Array:
    a, b = one.astype(np.float64), two.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _moved_answer(oracle: Oracle, model: onnx.ModelProto, feeds: Feeds, number: int) -> Answer:
    rng = np.random.default_rng(number)
    moved = onnx.ModelProto()
    moved.CopyFrom(model)
    for tensor in moved.graph.initializer:
        tensor.CopyFrom(
            numpy_helper.from_array(_moved(rng, numpy_helper.to_array(tensor)), tensor.name)
        )
    try:
        return oracle(moved, {name: _moved(rng, value) for name, value in feeds.items()})
    except Exception:  # an oracle raises what it likes; then it says nothing
        return {}


def _moved(rng: np.random.Generator, array: Array) -> Array:
    if not is_float(array.dtype):
        return array
    step = 4 * float(ml_dtypes.finfo(array.dtype).eps)
    factors = 1 + step * rng.choice([-1.0, 0.0, 1.0], array.shape)
    with np.errstate(all="ignore"):
        return np.asarray(array.astype(np.float64) * factors, array.dtype)
