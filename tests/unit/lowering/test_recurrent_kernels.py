"""The host's kernels of recurrent layers: tiles of batch entries with panels of the weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.programs import fixed_programs, generic_programs, is_symbolic
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import byoc_mlir
from byoc_mlir.testing.reference import Arrays, run_onnxruntime

_STEPS, _WIDTH = 4, 5
_GATES = {"LSTM": 4, "GRU": 3}


def _model(
    kind: str,
    hidden: int,
    batch: int | str,
    *,
    element: type[np.generic] = np.float32,
    **options: Any,
) -> tuple[ModelProto, Arrays]:
    """Returns a bidirectional layer (forward only for `f64`) with constant weights, and the
    weights.
    """
    directions = 1 if element is np.float64 else 2
    rng, rows = np.random.default_rng(0), _GATES[kind] * hidden
    shapes = {"w": (rows, _WIDTH), "r": (rows, hidden), "b": (2 * rows,)}
    weights = {
        name: (rng.standard_normal((directions, *shape)) * 0.4).astype(element)
        for name, shape in shapes.items()
    }
    type_ = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    node = helper.make_node(
        kind,
        ["x", "w", "r", "b"],
        ["y", "h"],
        hidden_size=hidden,
        direction="bidirectional" if directions == 2 else "forward",
        **options,
    )
    graph = helper.make_graph(
        [node],
        "layer",
        [helper.make_tensor_value_info("x", type_, [_STEPS, batch, _WIDTH])],
        [helper.make_tensor_value_info(name, type_, None) for name in ("y", "h")],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), weights


def _as_inputs(model: ModelProto) -> ModelProto:
    """Returns the model with its weights as inputs, so that they cannot be packed."""
    changed = ModelProto()
    changed.CopyFrom(model)
    for tensor in changed.graph.initializer:
        changed.graph.input.append(
            helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, tensor.dims)
        )
    del changed.graph.initializer[:]
    return changed


def _x(batch: int, element: type[np.generic] = np.float32) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((_STEPS, batch, _WIDTH)).astype(element)


def _check(found: Arrays, expected: Arrays, rtol: float) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=rtol, atol=rtol)


_KINDS = [("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1})]


@pytest.mark.values
@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5, 11])
@pytest.mark.parametrize(("kind", "options"), _KINDS)
def test_batches(kind: str, options: dict[str, Any], batch: int) -> None:
    model, weights = _model(kind, 16, batch, **options)
    inputs = {"x": _x(batch)}
    expected = run_onnxruntime(model, inputs)
    with byoc_mlir.compile(model, (), threads=2) as executable:
        _check(executable.run(inputs), expected, 1e-5)
    with byoc_mlir.compile(_as_inputs(model), (), threads=1) as executable:
        _check(executable.run({**inputs, **weights}), expected, 1e-5)


@pytest.mark.values
@pytest.mark.parametrize("hidden", [1, 4, 5, 20])
@pytest.mark.parametrize(("kind", "options"), _KINDS)
def test_widths_that_panels_fill_or_not(kind: str, options: dict[str, Any], hidden: int) -> None:
    model, _ = _model(kind, hidden, 3, **options)
    inputs = {"x": _x(3)}
    with byoc_mlir.compile(model, (), threads=1) as executable:
        _check(executable.run(inputs), run_onnxruntime(model, inputs), 1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_batches_that_a_call_says(kind: str) -> None:
    model, _ = _model(kind, 16, "batch")
    with byoc_mlir.compile(model, (), threads=1) as executable:
        for batch in (1, 2, 3, 4, 6, 9):
            inputs = {"x": _x(batch)}
            _check(executable.run(inputs), run_onnxruntime(model, inputs), 1e-5)
        assert is_symbolic(executable)
        assert len(generic_programs(executable)) == 1
        assert len(fixed_programs(executable)) == 0


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_double_precision(kind: str) -> None:
    model, _ = _model(kind, 16, 3, element=np.float64)
    x = _x(3, np.float64)
    evaluator = ReferenceEvaluator(model)
    values: Any = evaluator.run(None, {"x": x})
    expected: Arrays = dict(zip(("y", "h"), values, strict=True))
    with byoc_mlir.compile(model, (), threads=1) as executable:
        _check(executable.run({"x": x}), expected, 1e-12)
