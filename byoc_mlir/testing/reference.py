"""Independent oracle: ONNX Runtime, inputs for it, and the comparison of outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from byoc_mlir.comparison import largest_relative_error
from byoc_mlir.extras import import_extra

__all__ = [
    "Arrays",
    "assert_agrees",
    "largest_relative_error",
    "random_inputs",
    "run_onnxruntime",
]

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]


def run_onnxruntime(
    model: ModelProto | bytes, inputs: Arrays, *, threads: int = 1
) -> dict[str, npt.NDArray[Any]]:
    """Computes the outputs of `model` by name with ONNX Runtime on the CPU.

    Sums of `u8` times constant `i8` are exact if its optimiser knows the op; else they saturate on
    processors without VNNI.

    Raises:
        MissingExtraError: it is not installed.
    """
    errors = import_extra("onnxruntime.capi.onnxruntime_pybind11_state", "test")
    content = model if isinstance(model, bytes) else model.SerializeToString()
    try:
        session = _session(content, threads, {"session.x64quantprecision": "1"})
    except errors.NotImplemented:  # it makes nodes of `i8` that have no kernel
        session = _session(content, threads, {})
    names = [output.name for output in session.get_outputs()]
    values = cast("list[npt.NDArray[Any]]", session.run(names, dict(inputs)))
    return dict(zip(names, values, strict=True))


def _session(content: bytes, threads: int, entries: Mapping[str, str]) -> Any:
    onnxruntime = import_extra("onnxruntime", "test")
    options = onnxruntime.SessionOptions()
    for name, value in entries.items():
        options.add_session_config_entry(name, value)
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def random_inputs(
    model: ModelProto, seed: int = 0, dims: Mapping[str, int] | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Returns seeded random inputs for `model`, without its initializers.

    Floats are standard normal. Integers are 0 or 1, or any row if a `Gather` reads a table with
    them. `dims` has the sizes of symbolic dimensions, by default 1.
    """
    rng = np.random.default_rng(seed)
    constants = {tensor.name for tensor in model.graph.initializer}
    limits = _table_rows(model)
    return {
        value.name: _random_input(rng, value, limits.get(value.name, 2), dims or {})
        for value in model.graph.input
        if value.name not in constants
    }


def _random_input(
    rng: np.random.Generator, value: ValueInfoProto, limit: int, dims: Mapping[str, int]
) -> npt.NDArray[Any]:
    tensor = value.type.tensor_type
    shape = tuple(
        dim.dim_value if dim.HasField("dim_value") else dims.get(dim.dim_param, 1)
        for dim in tensor.shape.dim
    )
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if tensor.elem_type == TensorProto.BOOL:
        return np.asarray(rng.random(shape) < 0.5)
    if np.issubdtype(dtype, np.integer):
        return np.asarray(rng.integers(0, limit, shape), dtype)
    return np.asarray(rng.standard_normal(shape), dtype)


def _table_rows(model: ModelProto) -> dict[str, int]:
    """Returns the number of rows of the constant table that each value indexes by `Gather` on axis
    0.
    """
    sizes = {tensor.name: tensor.dims for tensor in model.graph.initializer}
    return {
        node.input[1]: sizes[node.input[0]][0]
        for node in model.graph.node
        if node.op_type == "Gather" and node.input[0] in sizes
    }


def assert_agrees(got: Arrays, want: Arrays, tolerance: float = 1e-4) -> None:
    """Asserts that names, dtypes and shapes agree, integers and booleans are equal, and errors are
    at most `tolerance` of each output's largest value.
    """
    assert set(got) == set(want), f"outputs {sorted(got)}, expected {sorted(want)}"
    for name, expected in want.items():
        found = got[name]
        assert found.dtype == expected.dtype, f"{name}: {found.dtype}, expected {expected.dtype}"
        assert found.shape == expected.shape, f"{name}: {found.shape}, expected {expected.shape}"
        if not np.issubdtype(expected.dtype, np.floating):
            assert np.array_equal(found, expected), f"{name}: values differ"
            continue
        error = largest_relative_error(found, expected)
        assert error <= tolerance, f"{name}: error {error:.2e} of the largest value"
