"""Quantised networks agree with ONNX Runtime, as floats around rounding and as integers."""

from __future__ import annotations

import pytest
from quantised_networks import QUANTISED, output_step, run_as_written, steps_between
from xdsl.dialects import func

import byoc_mlir
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay import qnn
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.frontend import import_model
from byoc_mlir.testing.reference import random_inputs
from byoc_mlir.transforms.fake_quantization_to_integer import FakeQuantizationToInteger
from byoc_mlir.transforms.fold_constants import FoldConstants
from byoc_mlir.transforms.integer_products import PRODUCTS
from byoc_mlir.transforms.kept_float import KEPT_FLOAT

WEIGHTED = {"relay.nn.conv2d", "relay.nn.dense", "relay.nn.matmul"}


COMPILED = (
    "convnet, QDQ, per channel, signed",
    "convnet, QOperator",
    "encoder, QDQ",
    "encoder, dynamic",
)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name: str) -> None:
    model = QUANTISED[name]()
    inputs = random_inputs(model, seed=3)
    with byoc_mlir.compile(model, fallback="allow") as executable:
        found = executable.run(inputs)["y"]
    steps = steps_between(found, run_as_written(model, inputs), output_step(model))
    assert steps.max() <= 2
    assert (steps > 1).sum() <= 1


@pytest.mark.parametrize("name", QUANTISED)
def test_as_integers(name: str) -> None:
    """Checks that all matmuls are integer ones, without conversions to floats between them."""
    model = QUANTISED[name]()
    inputs = random_inputs(model, seed=3)
    imported = import_model(model)
    FakeQuantizationToInteger().apply(make_context(), imported.module)
    FoldConstants().apply(make_context(), imported.module)
    imported.module.verify()
    main = next(op for op in imported.module.ops if isinstance(op, func.FuncOp))
    (found,) = evaluate(main, [inputs["x"]])
    steps = steps_between(found, run_as_written(model, inputs), output_step(model))
    assert steps.max() <= 2
    assert (steps > 1).sum() <= 1
    names = [op.name for op in main.walk()]
    assert PRODUCTS & {*names}
    if "dynamic" in name:
        return
    assert not WEIGHTED & {*names}
    if "convnet" in name:
        assert KEPT_FLOAT not in imported.module.attributes
        dequantised = [op for op in main.walk() if isinstance(op, qnn.DequantizeOp)]
        assert [use.operation.name for op in dequantised for use in op.output.uses] == [
            "func.return"
        ]
