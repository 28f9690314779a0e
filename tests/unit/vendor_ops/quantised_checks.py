"""Checks of quantised ops against ONNX Runtime, as imported and as integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from nodes import MICROSOFT, Arrays, node_model
from numpy.typing import NDArray
from onnx import ModelProto
from xdsl.dialects import func

from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.frontend import import_model
from byoc_mlir.testing.reference import run_onnxruntime
from byoc_mlir.transforms.decompose_qnn import DecomposeQnn
from byoc_mlir.transforms.fake_quantization_to_integer import FakeQuantizationToInteger

Array = NDArray[Any]


def f32(number: float) -> np.float32:
    """Returns a scale."""
    return np.float32(number)


def scales(rng: np.random.Generator, count: int) -> Array:
    """Returns random scales."""
    return (rng.random(count) * 0.05 + 0.001).astype(np.float32)


def bytes_of(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    """Returns random 8-bit integers; both ends of the range are among them."""
    info = np.iinfo(dtype)
    array = rng.integers(info.min, info.max + 1, shape, dtype)
    array.reshape(-1)[:2] = (info.min, info.max)[: array.size]
    return array


def small_bytes_of(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    """Returns random 8-bit integers of half the range.

    Larger weights that are no constants saturate in ONNX Runtime on processors without VNNI.
    """
    return bytes_of(rng, dtype, *shape) // 2


def run_passes(model: ModelProto, inputs: Arrays, *, integers: bool) -> list[Array]:
    """Returns the outputs by the evaluator of `relay`, as imported or as integers if that is
    possible.

    The decomposition of the module has to return the same bits.
    """
    imported = import_model(model)
    main = next(op for op in imported.module.ops if isinstance(op, func.FuncOp))
    operands = [array for info in imported.inputs if (array := inputs[info.name]) is not None]
    if integers:
        FakeQuantizationToInteger().apply(make_context(), imported.module)
        imported.module.verify()
    results = evaluate(main, operands)
    DecomposeQnn().apply(make_context(), imported.module)
    imported.module.verify()
    for one, other in zip(results, evaluate(main, operands), strict=True):
        np.testing.assert_array_equal(one, other)
    return list(results)


def assert_within_steps(found: Array, expected: Array, step: float = 1.0) -> None:
    """Asserts that results differ by at most one step in 99.9 % of the elements, and by two in
    all."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    steps = np.abs(found.astype(np.float64) - expected.astype(np.float64)) / step
    steps = np.round(steps, 3)
    assert steps.max(initial=0) <= 2, steps.max()
    assert (steps > 1).sum() <= max(steps.size * 0.001, 0)


def check_quantised(
    op_type: str,
    inputs: Arrays,
    outputs: Mapping[str, type[np.generic]] | Sequence[str] = ("y",),
    *,
    constants: Sequence[str] = (),
    domain: str = MICROSOFT,
    step: float = 1.0,
    **attributes: Any,
) -> None:
    """Compares a node with ONNX Runtime; `step` is the step of float outputs."""
    inputs = {k: None if v is None else np.asarray(v) for k, v in inputs.items()}
    model = node_model(op_type, inputs, outputs, constants=constants, domain=domain, **attributes)
    fed = {k: v for k, v in inputs.items() if v is not None and k not in constants}
    expected = list(run_onnxruntime(model, fed).values())
    for integers in (False, True):
        for one, other in zip(run_passes(model, inputs, integers=integers), expected, strict=True):
            assert_within_steps(one, other, step if one.dtype.kind == "f" else 1.0)
