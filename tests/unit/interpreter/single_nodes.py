"""Single nodes, run by their op of `byoc_mlir.interpreter`, and by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from byoc_mlir.interpreter.nodes import run_of
from byoc_mlir.interpreter.schemas import opset_of
from byoc_mlir.tensors import Array


def node_model(kind: str, operands: Sequence[Array | None], opset: int, **attributes: Any) -> Any:
    """Returns a model of one node with one result `y`; operands that are `None` are omitted."""
    names = ["" if operand is None else f"x{place}" for place, operand in enumerate(operands)]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(operand.dtype), None)
        for name, operand in zip(names, operands, strict=True)
        if operand is not None
    ]
    output = helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)
    node = helper.make_node(kind, names, ["y"], **attributes)
    graph = helper.make_graph([node], "one", inputs, [output])
    ids = [helper.make_opsetid("", opset)]
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=ids, ir_version=10)
    )


def interpreted(model: Any, operands: Sequence[Array | None], *, is_constant: bool) -> Array:
    """Returns the result of the interpreter's op.

    Args:
        is_constant: if true, the op may prepare its weights before the run.
    """
    (node,) = model.graph.node
    weights = operands[1] if is_constant and len(operands) > 1 else None
    run = run_of(node, opset_of(model), {} if weights is None else {"x1": weights})
    (result,) = run(*operands)
    return result


def ort(model: Any, operands: Sequence[Array | None]) -> Array:
    """Returns the result of ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feeds = {f"x{place}": x for place, x in enumerate(operands) if x is not None}
    return np.asarray(session.run(None, feeds)[0])


def check(kind: str, *operands: Array | None, opset: int = 21, **attributes: Any) -> None:
    """Checks that a node's result is ONNX Runtime's, with constant weights and with others."""
    model = node_model(kind, operands, opset, **attributes)
    expected = ort(model, operands)
    largest = float(np.abs(expected).max(initial=1))
    for is_constant in (False, True):
        found = interpreted(model, operands, is_constant=is_constant)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * largest)


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Returns random values."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)
