"""The same calls on ONNX Runtime's module and on ours give the same answers."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper, parser

import byoc_mlir.inference_session

MODULES = [onnxruntime, byoc_mlir.inference_session]
_GRAPH = """
<ir_version: 8, opset_import: ["" : 18], producer_name: "made here", model_version: 7>
named (float[batch, 3] x) => (float[batch, 4] y, float[batch, 4] z) {
  y = MatMul(x, w)
  z = Relu(y)
}
"""


@pytest.fixture
def model() -> ModelProto:
    proto = parser.parse_model(_GRAPH)
    weights = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    proto.doc_string = "what it is for"
    onnx.helper.set_model_props(proto, {"key": "value"})
    return proto


@pytest.fixture
def x() -> Any:
    return np.random.default_rng(2).standard_normal((5, 3)).astype(np.float32)


@pytest.fixture(params=MODULES, ids=["onnxruntime", "byoc_mlir"])
def ort(request: pytest.FixtureRequest) -> ModuleType:
    """Returns the module that a user imports as `ort`."""
    return request.param


def _expected(model: ModelProto, x: Any) -> Any:
    return x @ numpy_helper.to_array(model.graph.initializer[0])


def test_run(ort: ModuleType, model: ModelProto, x: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    assert options.get_session_config_entry("session.set_denormal_as_zero") == "1"
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    y, z = session.run(None, {"x": x})
    np.testing.assert_allclose(y, _expected(model, x), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(z, np.maximum(y, 0))
    only, again = session.run(["z", "y"], {session.get_inputs()[0].name: x}, ort.RunOptions())
    np.testing.assert_array_equal(only, z)
    np.testing.assert_array_equal(again, y)


def test_what_a_session_says(ort: ModuleType, model: ModelProto) -> None:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs, outputs = session.get_inputs(), session.get_outputs()
    assert [(i.name, i.type, i.shape) for i in inputs] == [("x", "tensor(float)", ["batch", 3])]
    assert [(o.name, o.type, o.shape) for o in outputs] == [
        (name, "tensor(float)", ["batch", 4]) for name in ("y", "z")
    ]
    assert session.get_overridable_initializers() == []
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.graph_name, meta.version) == ("made here", "named", 7)
    assert (meta.description, meta.custom_metadata_map) == ("what it is for", {"key": "value"})
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}
    assert "CPUExecutionProvider" in ort.get_available_providers()


def test_io_binding(ort: ModuleType, model: ModelProto, x: Any) -> None:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    value = ort.OrtValue.ortvalue_from_numpy(x.copy())
    binding.bind_ortvalue_input("x", value)
    y = ort.OrtValue.ortvalue_from_shape_and_type([5, 4], np.float32)
    z = np.empty((5, 4), np.float32)
    binding.bind_ortvalue_output("y", y)
    binding.bind_output("z", "cpu", 0, np.float32, z.shape, z.ctypes.data)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    np.testing.assert_allclose(y.numpy(), _expected(model, x), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(z, np.maximum(y.numpy(), 0))
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[1], z)

    value.update_inplace(2 * x)
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(y.numpy(), 2 * _expected(model, x), rtol=1e-5, atol=1e-5)

    binding.clear_binding_inputs()
    binding.clear_binding_outputs()
    binding.bind_cpu_input("x", x)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    (given,) = binding.get_outputs()
    np.testing.assert_allclose(given.numpy() * 2, z, rtol=1e-5, atol=1e-6)
    assert (given.shape(), given.data_type()) == ([5, 4], "tensor(float)")


def test_values(ort: ModuleType, model: ModelProto, x: Any) -> None:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    value = ort.OrtValue.ortvalue_from_numpy(x)
    assert (value.device_name(), value.is_tensor(), value.has_value()) == ("cpu", True, True)
    (z,) = session.run_with_ort_values(["z"], {"x": value})
    np.testing.assert_allclose(z.numpy(), np.maximum(_expected(model, x), 0), rtol=1e-5, atol=1e-6)


def test_initialisers_are_no_inputs_to_give(ort: ModuleType, model: ModelProto) -> None:
    model.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [3, 4]))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert [value.name for value in session.get_inputs()] == ["x"]
    assert [value.name for value in session.get_overridable_initializers()] == ["w"]
