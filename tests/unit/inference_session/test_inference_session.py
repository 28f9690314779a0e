"""Features beyond ONNX Runtime's interface: backends, artifacts, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import byoc_mlir
from byoc_mlir.errors import ByocError, InvalidInputError, InvalidModelError
from byoc_mlir.inference_session import InferenceSession, OrtValue, SessionOptions

_MATMUL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 8] x, float[8, 8] w) => (float[n, 8] y) { y = MatMul(x, w) }
"""


@pytest.fixture
def model() -> ModelProto:
    return parser.parse_model(_MATMUL)


@pytest.fixture
def feed() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "x": rng.standard_normal((2, 8)).astype(np.float32),
        "w": rng.standard_normal((8, 8)).astype(np.float32),
    }


def test_providers_are_backends(model: ModelProto, feed: dict[str, Any]) -> None:
    session = InferenceSession(
        model.SerializeToString(), providers=["onnxruntime", "CPUExecutionProvider"]
    )
    (y,) = session.run(["y"], feed)
    np.testing.assert_allclose(y, feed["x"] @ feed["w"], rtol=1e-5, atol=1e-6)
    assert session.get_providers() == ["onnxruntime", "CPUExecutionProvider"]
    assert session.executable.report().counts() == {"onnxruntime": 1}


def test_a_provider_that_is_not_there_is_passed_over(model: ModelProto) -> None:
    with pytest.warns(UserWarning, match="provider 'CUDAExecutionProvider' is not there"):
        session = InferenceSession(
            model.SerializeToString(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"]
        )
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_a_compiled_file(model: ModelProto, feed: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    shapes = {name: array.shape for name, array in feed.items()}
    with byoc_mlir.compile(model, targets=()) as executable:
        executable.export_library(path, shapes=shapes)
    session = InferenceSession(path)
    (y,) = session.run(None, feed)
    np.testing.assert_allclose(y, feed["x"] @ feed["w"], rtol=1e-5, atol=1e-6)
    assert [(o.name, o.type, o.shape) for o in session.get_outputs()] == [
        ("y", "tensor(float)", [2, 8])
    ]


def test_known_sizes_are_compiled_at_once(model: ModelProto) -> None:
    options = SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    session = InferenceSession(model.SerializeToString(), options)
    assert len(session.executable.report()) == 1  # which it has when something is compiled
    symbolic = InferenceSession(model.SerializeToString())
    for mine, other in zip(session.get_inputs(), symbolic.get_inputs(), strict=True):
        assert mine.shape == [2 if size == "n" else size for size in other.shape]


def test_other_sizes_than_those_set_are_refused(model: ModelProto, feed: dict[str, Any]) -> None:
    options = SessionOptions()
    options.add_free_dimension_override_by_name("n", 3)
    session = InferenceSession(model.SerializeToString(), options)
    with pytest.raises(InvalidInputError, match=r"found \[2"):
        session.run(None, feed)


def test_sizes_of_unknown_symbols_are_refused(model: ModelProto) -> None:
    options = SessionOptions()
    options.add_free_dimension_override_by_name("m", 2)
    with pytest.raises(InvalidInputError, match="no symbolic dimension m; the model's are n"):
        InferenceSession(model.SerializeToString(), options)


def test_errors_are_typed(model: ModelProto, feed: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match="path_or_bytes is None"):
        InferenceSession(None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidModelError, match=r"missing\.onnx"):
        InferenceSession(tmp_path / "missing.onnx")
    with pytest.raises(InvalidInputError, match="2 entries for 1 providers"):
        InferenceSession(model.SerializeToString(), None, ["onnxruntime"], [{}, {}])
    session = InferenceSession(model.SerializeToString())
    with pytest.raises(InvalidInputError, match="no output q; the model's are y"):
        session.run(["q"], feed)
    with pytest.raises(InvalidInputError, match="input_feed is"):
        session.run(None, [feed["x"]])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInputError, match=r"missing input\(s\) w"):
        session.run(None, {"x": feed["x"]})


def test_errors_of_bindings(model: ModelProto, feed: dict[str, Any]) -> None:
    session = InferenceSession(model.SerializeToString())
    binding = session.io_binding()
    with pytest.raises(InvalidInputError, match="no output is bound"):
        session.run_with_iobinding(binding)
    with pytest.raises(InvalidInputError, match="no output 'q'; the model's are y"):
        binding.bind_output("q")
    with pytest.raises(InvalidInputError, match="device_type is 'tpu', accepted are 'cpu'"):
        binding.bind_output("y", "tpu")
    with pytest.raises(InvalidInputError, match="give element_type and shape, too"):
        binding.bind_output("y", "cpu", 0, buffer_ptr=feed["x"].ctypes.data)
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    binding.bind_ortvalue_output("y", OrtValue(np.empty((3, 8), np.float32)))
    with pytest.raises(InvalidInputError, match=r"must be float32\[2, 8\], found"):
        session.run_with_iobinding(binding)


def test_errors_of_options() -> None:
    options = SessionOptions()
    with pytest.raises(ByocError, match="the size of 'n' is -1"):
        options.add_free_dimension_override_by_name("n", -1)
    with pytest.raises(ByocError, match="accepted are '0' and '1'"):
        options.add_session_config_entry("session.set_denormal_as_zero", "yes")
    with pytest.raises(ByocError, match="no entry 'a'"):
        options.get_session_config_entry("a")
