"""Public names of ONNX Runtime: all work, have no effect, or raise an error with advice."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from helpers.models import parsed
from onnx import TensorProto, helper, numpy_helper

import byoc_mlir.inference_session as ours
from byoc_mlir.errors import ByocError, InvalidInputError

_OF_PACKAGE = {"cuda_version", "import_capi_exception", "package_name", "version"}
X = np.arange(3, dtype=np.float32)


def _public(owner: object) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_") and name not in _OF_PACKAGE]


def _model(data: onnx.TensorProto) -> onnx.ModelProto:
    model = parsed("(float[3] x) => (float[3] y)", "y = Mul (x, w)")
    model.graph.initializer.append(data)
    return model


@pytest.fixture
def model() -> bytes:
    return _model(numpy_helper.from_array(X, "w")).SerializeToString()


def test_names_of_the_module() -> None:
    names = [
        name
        for name in _public(onnxruntime)
        if not isinstance(getattr(onnxruntime, name), ModuleType)
    ]
    assert [name for name in names if not hasattr(ours, name)] == []
    assert [name for name in ours.__all__ if not hasattr(onnxruntime, name)] == []
    assert not hasattr(ours, "OrtNonsense")


def test_names_of_objects(model: bytes) -> None:
    session = ours.InferenceSession(model)
    for mine, theirs in (
        (session, onnxruntime.InferenceSession),
        (session.io_binding(), onnxruntime.IOBinding),
        (ours.SessionOptions(), onnxruntime.SessionOptions),
        (ours.RunOptions(), onnxruntime.RunOptions),
        (ours.OrtValue(X), onnxruntime.OrtValue),
    ):
        assert [name for name in _public(theirs) if not hasattr(mine, name)] == []
        assert not hasattr(mine, "nonsense")


def test_exceptions_are_those_that_are_raised(model: bytes) -> None:
    their_exceptions = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    names = [
        name
        for name in _public(their_exceptions)
        if isinstance(getattr(their_exceptions, name), type)
        and issubclass(getattr(their_exceptions, name), Exception)
    ]
    state = ours.capi.onnxruntime_pybind11_state
    assert all(issubclass(getattr(state, name), ByocError) for name in names)
    with pytest.raises(state.InvalidArgument):
        ours.InferenceSession(model).run(None, {"x": X[:2]})
    with pytest.raises(state.NoSuchFile):
        ours.InferenceSession("missing.onnx")


def test_what_is_not_there_says_what_to_do(model: bytes) -> None:
    with pytest.raises(ByocError, match="'SparseTensor' is ONNX Runtime's alone; pass dense"):
        ours.SparseTensor.sparse_coo_from_numpy([], X, X, None)
    with pytest.raises(ByocError, match=r"'add_provider'.*providers="):
        ours.SessionOptions().add_provider("dnnl", {})
    with pytest.raises(ByocError, match="get_input_memory_infos"):
        ours.InferenceSession(model).get_input_memory_infos()
    assert not isinstance(X, ours.SparseTensor)


def test_what_changes_nothing(model: bytes, tmp_path: Path) -> None:
    ours.set_default_logger_severity(3)
    ours.set_seed(1)
    ours.disable_telemetry_events()
    ours.preload_dlls(cuda=False)
    options = ours.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "out.onnx")
    session = ours.InferenceSession(model, options)
    session.disable_fallback()
    assert ours.get_device() == "CPU"
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * X)
    assert not list(tmp_path.iterdir())


def test_available_providers_are_those_of_a_session_without_any(model: bytes) -> None:
    providers = ours.get_available_providers()
    session = ours.InferenceSession(model, providers=providers)
    assert session.get_providers() == providers
    assert {"examplejson", *providers} <= {*ours.get_all_providers()}
    assert "examplejson" not in providers
    session.set_providers(["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * X)


@pytest.mark.parametrize("ort", [onnxruntime, ours], ids=["theirs", "ours"])
def test_initializers_that_the_caller_gives(ort: Any, tmp_path: Path) -> None:
    data = helper.make_tensor("w", TensorProto.FLOAT, [3], np.zeros(3, np.float32).tobytes(), True)
    data.ClearField("raw_data")
    data.data_location = TensorProto.EXTERNAL
    data.external_data.add(key="location", value="zeros.bin")
    (tmp_path / "zeros.bin").write_bytes(bytes(12))
    path = tmp_path / "model.onnx"
    path.write_bytes(_model(data).SerializeToString())
    options, w = ort.SessionOptions(), 2 * X
    value = ort.OrtValue.ortvalue_from_numpy(w)  # ONNX Runtime does not keep it
    options.add_initializer("w", value)
    (y,) = ort.InferenceSession(path, options).run(None, {"x": X})
    np.testing.assert_array_equal(y, X * w)


def test_an_initializer_of_another_shape_is_refused(model: bytes) -> None:
    options = ours.SessionOptions()
    options.add_initializer("w", ours.OrtValue(X[:2]))
    with pytest.raises(InvalidInputError, match=r"'w' is float32\[3\], found float32\[2\]"):
        ours.InferenceSession(model, options)


def test_bindings_and_values_made_of_their_names(model: bytes) -> None:
    session = ours.InferenceSession(model)
    binding = ours.SessionIOBinding(session)
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X * X)
    halves = np.array([0x3F80], np.uint16)
    value = ours.OrtValue.ortvalue_from_numpy_with_onnx_type(halves, TensorProto.BFLOAT16)
    assert (value.element_type(), float(value.numpy()[0])) == (TensorProto.BFLOAT16, 1.0)
