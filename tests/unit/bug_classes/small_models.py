"""Comparison of small models with an independent evaluator, for the tests of each class of bugs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import byoc_mlir
from byoc_mlir.testing.reference import run_onnxruntime

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
Oracle = Callable[[ModelProto, Arrays], dict[str, Array]]

HOST: tuple[tuple[str, ...], ...] = ((),)
BOTH: tuple[tuple[str, ...], ...] = ((), ("dnnl",))
"""Targets: the host alone, and oneDNN with the host."""


def numbers(*shape: int, seed: int = 0) -> Array:
    """Returns seeded standard normal values."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ints(*values: int) -> Array:
    """Returns a vector of int64."""
    return np.array(values, np.int64)


def floats(*values: float) -> Array:
    """Returns a vector of float32."""
    return np.array(values, np.float32)


def node(op_type: str, inputs: str, outputs: str = "", **attributes: Any) -> NodeProto:
    """Returns a node, from names separated by spaces; `_` omits an input.

    Without names its output is named by `check`.
    """
    names = ["" if name == "_" else name for name in inputs.split()]
    return helper.make_node(op_type, names, outputs.split(), **attributes)


def reference(model: ModelProto, feeds: Arrays) -> dict[str, Array]:
    """Returns the outputs by the evaluator that comes with ONNX."""
    names = [output.name for output in model.graph.output]
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(model).run(None, dict(feeds))
    return {name: np.asarray(result) for name, result in zip(names, results, strict=True)}


def onnxruntime(model: ModelProto, feeds: Arrays) -> dict[str, Array]:
    """Returns the outputs by ONNX Runtime."""
    return run_onnxruntime(model, feeds)


def check(
    nodes: Sequence[NodeProto],
    feeds: Arrays,
    constants: Arrays | None = None,
    *,
    outputs: str = "",
    oracle: Oracle = reference,
    targets: Sequence[tuple[str, ...]] = HOST,
    tolerance: float = 1e-5,
    opset: int = 20,
) -> None:
    """Asserts that the compiled model's outputs equal the oracle's, types and shapes included.

    Args:
        outputs: names separated by spaces; by default the outputs of all nodes.
        tolerance: absolute and relative, of floats; other types must be equal.
    """
    model = model_of(nodes, feeds, constants or {}, outputs.split(), opset)
    wanted = oracle(model, feeds)
    for each in targets:
        executable = byoc_mlir.compile(model, targets=each, threads=1, fallback="allow")
        with executable:
            found = executable.run(feeds)
        assert list(found) == list(wanted)
        for name, want in wanted.items():
            _assert_same(found[name], want, tolerance, f"{name}, targets={each}")


def model_of(
    nodes: Sequence[NodeProto],
    feeds: Arrays,
    constants: Arrays,
    outputs: Sequence[str],
    opset: int,
) -> ModelProto:
    """Returns the nodes as a model."""
    for number, each in enumerate(nodes):
        if not each.output:
            each.output.append(f"{each.op_type}_{number}")
    names = outputs or [name for each in nodes for name in each.output if name]
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in feeds.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in names],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _assert_same(got: Array, want: Array, tolerance: float, what: str) -> None:
    assert got.dtype == want.dtype, what
    assert got.shape == want.shape, what
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    np.testing.assert_allclose(
        got.astype(np.float64),
        want.astype(np.float64),
        rtol=tolerance,
        atol=tolerance,
        err_msg=what,
    )
