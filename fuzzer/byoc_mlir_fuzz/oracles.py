"""Oracles for the outputs of a model: ONNX Runtime, and ONNX's reference evaluator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from importlib.util import find_spec
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from byoc_mlir.comparison import is_close
from byoc_mlir.errors import ToolchainError
from byoc_mlir.testing.samples.onnx_nodes.values import is_float
from byoc_mlir_fuzz.case import Array, Feeds

Answer: TypeAlias = Mapping[str, Array]
"""Outputs by name."""

Oracle: TypeAlias = Callable[[onnx.ModelProto, Feeds], Answer]


def require_onnxruntime() -> None:
    """Checks that ONNX Runtime is installed.

    Raises:
        ToolchainError: it is not; the message has the package to install.
    """
    if find_spec("onnxruntime") is None:
        raise ToolchainError(
            "the fuzzer compares with ONNX Runtime, which is not installed; run"
            " pip install onnxruntime, or install byoc_mlir[test]"
        )


def onnxruntime_answer(model: onnx.ModelProto, feeds: Feeds) -> Answer:
    """Returns the outputs of ONNX Runtime."""
    from byoc_mlir.testing.reference import run_onnxruntime

    return as_arrays(run_onnxruntime(model, feeds))


def as_arrays(outputs: Mapping[str, Any]) -> Answer:
    """Returns outputs as arrays; an output of one map a row becomes an array of its values and one
    of its keys.
    """
    arrays: dict[str, Array] = {}
    for name, value in outputs.items():
        if not isinstance(value, list):
            arrays[name] = np.asarray(value)
            continue
        rows = [sorted(row.items()) for row in cast("list[dict[Any, float]]", value)]
        arrays[name] = np.array([[number for _, number in row] for row in rows], np.float32)
        arrays[name + KEYS] = np.array([[key for key, _ in row] for row in rows], object)
    return arrays


KEYS = ":keys"
"""Suffix of the name of an output that is a map, for its keys."""


def reference_answer(model: onnx.ModelProto, feeds: Feeds) -> Answer:
    """Returns the outputs of the reference evaluator."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        values = cast("Sequence[Any]", ReferenceEvaluator(model).run(None, dict(feeds)))
    outputs = zip(model.graph.output, values, strict=True)
    return as_arrays({output.name: _as_declared(output, value) for output, value in outputs})


def _as_declared(output: onnx.ValueInfoProto, found: Any) -> Any:
    """Converts an output to the type that the model declares, since numpy's promotion may change
    it.
    """
    declared = output.type.tensor_type.elem_type
    if not declared:
        return found
    value = np.asarray(found)
    if value.dtype.kind in "SU":
        return value.astype(object)
    if value.dtype == np.bool_:
        return value
    dtype = onnx.helper.tensor_dtype_to_np_dtype(declared)
    both_integers = np.issubdtype(value.dtype, np.integer) and np.issubdtype(dtype, np.integer)
    both_floats = is_float(value.dtype) and is_float(dtype)
    return value.astype(dtype) if both_integers or both_floats else value


ORACLES: Mapping[str, Oracle] = {
    "onnxruntime": onnxruntime_answer,
    "reference": reference_answer,
}


RECURRENT = frozenset(("LSTM", "GRU", "RNN"))


def finite_only(name: str, got: Answer, want: Answer, ops: Set[str]) -> Answer:
    """Returns `got`, with the oracle's elements if either is not finite, for ops in which it
    multiplies infinities.

    The oracles multiply an infinity by zero in elements that do not count: in interpolations,
    slopes of zeros, and in the reference evaluator the holes of dilated windows. ONNX Runtime
    subtracts elements that leave a window from its sum, and multiplies the mean of a normalisation
    by its scale. It takes roots of variances that rounding made negative, returns 0 for the mean of
    no elements, and loses NaN in recurrent layers.
    """
    if ops.isdisjoint(spreading(name)):
        return got
    return {name: _finite_only(got[name], value) for name, value in want.items() if name in got}


def spreading(name: str) -> Set[str]:
    """Returns the ops in which an oracle may have NaN where infinities do not count."""
    return _INTERPOLATING | _SPREADING[name]


def losing(name: str) -> Set[str]:
    """Returns the ops in which an oracle may have a number in place of NaN."""
    return RECURRENT | {"Gelu"} if name == "onnxruntime" else frozenset()


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
        *RECURRENT,
        "Gelu",
        "ai.onnx.ml.Normalizer",  # the largest number is at least the lowest finite one
    },
}


def _finite_only(got: Array, want: Array) -> Array:
    if got.shape != want.shape or got.dtype != want.dtype or not is_float(want.dtype):
        return got
    one, two = got.astype(np.float64), want.astype(np.float64)
    return np.where(np.isfinite(one) & np.isfinite(two), got, want)


def differences(got: Answer, want: Answer, slack: Answer | None = None) -> Mapping[str, str]:
    """Returns the outputs in which two answers differ beyond tolerance, each with the first
    difference.

    Integers and booleans must be equal, floats close in the measure of their type; NaN and
    infinities must be at the same positions. `slack` is the further error that each element may
    have.
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


TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-7}
"""Relative tolerances by type. In f64 some functions of the oracles are less accurate."""


def _close(got: Array, want: Array, slack: Any) -> Array:
    tolerance = TOLERANCE[want.dtype.name]
    two = np.abs(want.astype(np.float64))
    finite = np.isfinite(two)
    largest = two[finite].max(initial=0.0)
    smallest = float(ml_dtypes.finfo(want.dtype).smallest_normal)
    accepted = np.where(finite, 5 * tolerance * two, 0.0) + tolerance * largest + smallest
    return is_close(got, want, np.maximum(accepted, slack))
