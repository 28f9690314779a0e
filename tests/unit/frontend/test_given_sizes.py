"""Inputs whose values are sizes: one program serves them all."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx_models import model_of, node

import byoc_mlir
from byoc_mlir.errors import (
    ByocError,
    ExportError,
    InputValuesNeededError,
    InternalError,
    InvalidInputError,
)
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.testing.reference import run_onnxruntime

_X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
_ONE = numpy_helper.from_array(np.array([1]), "one")
_FIRST = numpy_helper.from_array(np.array([0]), "first")

NODES = {
    "reshape": [node("Reshape", "x s", "r"), node("Exp", "r", "y")],
    "expand": [
        node("ReduceSum", "x", "row", keepdims=1),
        node("Concat", "one s", "shape", axis=0),
        node("Expand", "row shape", "y"),
    ],
    "tile": [node("Tile", "x s", "y")],
    "topk": [node("Gather", "s first", "k", axis=0), node("TopK", "x k", "y places")],
    "sum": [
        node("ReduceProd", "s", "count", keepdims=0),
        node("Sub", "count count", "zero"),
        node("Squeeze", "one", "step"),
        node("Range", "zero count step", "places"),
        node("Cast", "places", "y", to=TensorProto.FLOAT),
    ],
}
VALUES = {
    "reshape": [[3, 8], [8, 3], [2, 12], [24, 1]],
    "expand": [[4, 6], [1, 9], [5, 1], [0, 2]],
    "tile": [[1, 2], [3, 1], [0, 2]],
    "topk": [[3, 1], [0, 1], [6, 0], [1, 1]],
    "sum": [[2, 3], [7, 1], [0, 5]],
}


def _model(kind: str) -> ModelProto:
    inputs = [("x", TensorProto.FLOAT, (4, 6)), ("s", TensorProto.INT64, (2,))]
    if kind == "sum":
        del inputs[0]
    model = model_of(NODES[kind], inputs, ["y"], opset=17, initializers=[_ONE, _FIRST])
    model.ir_version = 8
    return model


def _inputs(kind: str, values: list[int]) -> dict[str, np.ndarray]:
    inputs = {"x": _X, "s": np.array(values)}
    return {name: inputs[name] for name in ("x", "s") if kind != "sum" or name == "s"}


def _check(executable: Executable, kind: str, values: list[int]) -> None:
    inputs = _inputs(kind, values)
    (wanted,) = run_onnxruntime(_model(kind), inputs).values()
    np.testing.assert_allclose(executable.run(inputs)["y"], wanted, rtol=1e-6)


@pytest.mark.values
@pytest.mark.parametrize("targets", [(), None], ids=["host", "default"])
@pytest.mark.parametrize("kind", NODES)
def test_one_program_serves_all_values(kind: str, targets: tuple[str, ...] | None) -> None:
    with byoc_mlir.compile(_model(kind), targets=targets, cache=False) as executable:
        for values in VALUES[kind]:
            _check(executable, kind, values)
        assert [variant.shapes for variant in executable.report().variants] == [()]


def test_values_that_are_no_sizes_are_compiled_in() -> None:
    with byoc_mlir.compile(_model("reshape"), targets=(), cache=False) as executable:
        for values in [[-1, 6], [3, 8], [0, -1], [6, 4]]:
            _check(executable, "reshape", values)


def test_a_size_that_does_not_fit_is_refused() -> None:
    with byoc_mlir.compile(_model("reshape"), targets=(), cache=False) as executable:
        _check(executable, "reshape", [3, 8])
        with pytest.raises(InvalidInputError, match=r"Reshape.*found s\{0\} = 5, s\{1\} = 5; exp"):
            executable.run(_inputs("reshape", [5, 5]))
        _check(executable, "reshape", [4, 6])


def test_what_needs_the_values_says_so() -> None:
    with byoc_mlir.compile(_model("tile"), targets=(), cache=False) as executable:
        with pytest.raises(InputValuesNeededError, match="s \\(input\\): its values are sizes"):
            executable.warmup({})
        with pytest.raises(ExportError, match="depend on the values of the inputs s"):
            executable.export_library("never.so")


def test_it_is_pickled_and_cached(tmp_path: Path) -> None:
    for _ in range(2):
        with byoc_mlir.compile(_model("tile"), targets=(), cache=tmp_path) as executable:
            _check(executable, "tile", [2, 2])
            with pickle.loads(pickle.dumps(executable)) as other:
                _check(other, "tile", [3, 1])


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(0, 3, 2**63 - 1), (0, 2**63 - 1, 1), (2, -(2**63), -(2**63)), (0, 2**31 - 1, 2)],
)
def test_a_slice_by_the_ends_of_int64(start: int, end: int, step: int) -> None:
    inputs = [("x", TensorProto.FLOAT, (4, 6)), *((k, TensorProto.INT64, (1,)) for k in "set")]
    sliced = node("Slice", "x s e first t", "y")
    limits = byoc_mlir.Limits(tensor_bytes=1 << 30)
    model = model_of([sliced], inputs, initializers=[_FIRST])
    executable = byoc_mlir.compile(model, targets=(), limits=limits)
    given = {k: np.array([v]) for k, v in zip("set", (start, end, step), strict=True)}
    expected = _X[start:end:step] if step > 0 else _X[start : start + 1]
    np.testing.assert_array_equal(executable.run({"x": _X, **given})["y"], expected)


def test_a_scale_that_no_size_has() -> None:
    inputs = [("x", TensorProto.FLOAT, (4, 6)), ("s", TensorProto.FLOAT, (2,))]
    executable = byoc_mlir.compile(
        model_of([helper.make_node("Resize", ["x", "", "s"], ["y"])], inputs), targets=()
    )
    with pytest.raises(ByocError, match="accepted are integers of 64 bits") as caught:
        executable.run({"x": _X, "s": np.array([1, 1e30], np.float32)})
    assert not isinstance(caught.value, InternalError)
