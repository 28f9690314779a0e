"""The node tests of ONNX through the importer and the evaluator: the broadest check of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx_suite import SuiteCase, suite_cases
from xdsl.dialects.func import FuncOp

from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.errors import ByocError, InputValuesNeededError
from byoc_mlir.frontend import ImportedModel, import_model

pytestmark = pytest.mark.xdist_group("onnx_cases")  # ONNX takes ten seconds to build them

LEAST_PASSED = 1800
_DRAWN = ("test_bernoulli", "test_training_dropout")


def _arrays(values: Sequence[Any]) -> list[Any]:
    if any(isinstance(value, list) or value is None for value in values):
        raise ByocError("sequences and optionals are for the suite of whole models")
    return list(values)


def _import(model: Any, shapes: dict[str, Any], inputs: dict[str, Any]) -> ImportedModel:
    values: dict[str, Any] = {}
    while True:
        try:
            return import_model(model, shapes=shapes, values=values)
        except InputValuesNeededError as error:
            if not values.keys().isdisjoint(error.inputs):
                raise
            values.update((name, np.asarray(inputs[name])) for name in error.inputs)


def _check(case: SuiteCase) -> None:
    source, data_sets = case.load()
    inputs, expected = map(_arrays, data_sets[0])
    names = [value.name for value in source.graph.input]
    shapes = {
        name: array.shape
        for name, array in zip(names, inputs, strict=True)
        if isinstance(array, np.ndarray)
    }
    model = _import(source, shapes, dict(zip(names, inputs, strict=True)))
    model.module.verify()
    if any(isinstance(op, OnnxNodeOp) for op in model.module.walk()):
        raise ByocError("this is for the fallback interpreter")
    (main,) = (
        op for op in model.module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main"
    )
    found = evaluate(main, [np.asarray(array) for array in inputs])
    for result, wanted in zip(found, expected, strict=True):
        assert result.shape == np.shape(wanted)
        assert result.dtype == wanted.dtype
        if result.dtype.kind in "iub":
            np.testing.assert_array_equal(result, wanted)
        else:
            is_half = result.dtype.itemsize <= 2
            np.testing.assert_allclose(
                result.astype(np.float64),
                wanted.astype(np.float64),
                rtol=2e-2 if is_half else case.rtol,
                atol=1e-2 if is_half else 1e-6,
            )


def test_node_cases() -> None:
    passed, wrong = 0, []
    for case in suite_cases():
        if case.kind != "node" or case.name.startswith(_DRAWN):
            continue  # the standard does not fix what a random op draws
        try:
            _check(case)
            passed += 1
        except ByocError:  # refused with a reason
            continue
        except AssertionError as error:
            wrong.append(f"{case.name}: {error}")
    assert not wrong, "\n".join(wrong)
    assert passed >= LEAST_PASSED
