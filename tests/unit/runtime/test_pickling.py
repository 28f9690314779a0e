"""Executables in pickles: the unpickled one runs as the first, or an error has the reason."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.models import parsed
from onnx import ModelProto
from process_models import convolution, elementwise, inputs

import byoc_mlir
from byoc_mlir.errors import (
    ExecutionError,
    ExportError,
    IncompatibleArtifactError,
    InvalidArtifactError,
)
from byoc_mlir.runtime.files.pickled import packed, unpacked


@pytest.mark.parametrize("target", ["host", "dnnl", "examplejson"])
def test_compiled_models(target: str) -> None:
    targets = () if target == "host" else (target,)
    model = convolution(8)
    executable = byoc_mlir.compile(model, targets=targets, threads=2, fallback="allow")
    again = pickle.loads(pickle.dumps(executable))
    feeds = inputs(model)
    np.testing.assert_array_equal(again.run(feeds)["y"], executable.run(feeds)["y"])
    assert (again.inputs, again.outputs) == (executable.inputs, executable.outputs)
    assert again.threads == 2
    assert str(again.report()) == str(executable.report())
    assert pickle.loads(pickle.dumps(again)).run(feeds)["y"].shape == (1, 16, 8, 8)


def test_loaded_artifacts(tmp_path: Path) -> None:
    model = elementwise()
    byoc_mlir.compile(model, targets=()).export_library(tmp_path / "model.so")
    loaded = byoc_mlir.load(tmp_path / "model.so", threads=3)
    (tmp_path / "model.so").unlink()
    again = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(again.run(inputs(model))["y"], loaded.run(inputs(model))["y"])
    assert again.threads == 3


def test_symbolic_models_are_compiled_again() -> None:
    executable = byoc_mlir.compile(elementwise("n"), targets=(), threads=1)
    x = np.ones(5, np.float32)
    before = pickle.loads(pickle.dumps(executable))
    executable.run({"x": x})
    for one in (before, pickle.loads(pickle.dumps(executable))):
        np.testing.assert_allclose(one.run({"x": x})["y"], np.exp(x), rtol=1e-6)


def test_symbolic_models_find_the_cache_again(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    model, x = elementwise("n").SerializeToString(), np.ones(5, np.float32)
    for _ in range(2):
        executable = byoc_mlir.compile(model, targets=(), threads=1, cache=tmp_path)
        again = pickle.loads(pickle.dumps(executable))
        np.testing.assert_allclose(again.run({"x": x})["y"], np.exp(x), rtol=1e-6)


def test_what_is_altered_or_for_another_machine_is_refused() -> None:
    executable = byoc_mlir.compile(elementwise(), targets=(), threads=1)
    content, _ = packed(executable.program)
    with pytest.raises(InvalidArtifactError, match="SHA-256"):
        unpacked(content[:100] + bytes([content[100] ^ 1]) + content[101:], None)
    program = executable.program
    foreign = replace(program, cpu=replace(program.cpu, features=("unheard_of",)))
    with pytest.raises(IncompatibleArtifactError, match="unheard_of"):
        unpacked(*packed(foreign))


def test_models_with_sequences_are_compiled_again() -> None:
    sequences = parsed("(float[2] x) => (seq(float[]) s)", "s = SequenceConstruct (x, x)")
    executable = byoc_mlir.compile(sequences, targets=(), threads=1)
    x = np.ones(2, np.float32)
    for array in pickle.loads(pickle.dumps(executable)).run({"x": x})["s"]:
        np.testing.assert_array_equal(array, x)


def test_what_cannot_be_pickled_says_so(tmp_path: Path) -> None:
    executable = byoc_mlir.compile(elementwise("n"), targets=(), threads=1)
    executable.export_library(tmp_path / "model.so")
    with pytest.raises(ExportError, match="cannot be pickled"):
        pickle.dumps(byoc_mlir.load(tmp_path / "model.so"))
    closed = byoc_mlir.compile(elementwise(), targets=(), threads=1)
    closed.close()
    with pytest.raises(ExecutionError, match="closed"):
        pickle.dumps(closed)


def test_a_model_of_stages_is_compiled_again() -> None:
    executable = byoc_mlir.compile(_of_two_stages(), targets=(), threads=1)
    inputs = {
        info.name: np.ones(list(map(int, info.shape)), info.dtype) for info in executable.inputs
    }
    expected = executable.run(inputs)
    for name, array in pickle.loads(pickle.dumps(executable)).run(inputs).items():
        np.testing.assert_array_equal(array, expected[name])


def _of_two_stages() -> ModelProto:
    nodes = "where = NonZero (x) y = Cast <to = 1> (where) z = Exp (y)"
    return parsed("(float[4] x) => (float[1, n] z)", nodes)
