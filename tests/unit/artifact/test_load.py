"""Exported models compute the same after they are loaded, here and in a new process."""

from __future__ import annotations

import json
import os
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from artifact_files import elementwise_model, inputs_for, run_python
from helpers.models import parsed

import byoc_mlir
from byoc_mlir.errors import ByocError, ExecutionError, InvalidArtifactError
from byoc_mlir.testing.networks import NETWORKS, GraphBuilder

LOAD_AND_RUN = """
import json, sys
import numpy as np
import byoc_mlir
executable = byoc_mlir.load(sys.argv[1])
outputs = executable.run(dict(np.load(sys.argv[2])))
np.savez(sys.argv[3], **outputs)
modules = [name for name in ("onnx", "xdsl", "llvmlite", "ml_dtypes") if name in sys.modules]
print(json.dumps([modules, executable.report().counts()]))
"""


@pytest.mark.parametrize(
    ("network", "targets", "placed"),
    [("mlp3", (), "host"), ("mlp3", ("dnnl",), "dnnl"), ("mnist", ("dnnl",), "dnnl")],
)
def test_a_new_process_computes_the_same_bits_without_the_compiler(
    network: str, targets: tuple[str, ...], placed: str, tmp_path: Path
) -> None:
    executable = byoc_mlir.compile(NETWORKS[network](), targets=targets, fallback="allow")
    inputs = inputs_for(executable)
    expected = executable.run(inputs)
    executable.export_library(tmp_path / "model.so")
    np.savez(tmp_path / "inputs.npz", allow_pickle=False, **inputs)
    printed = run_python(
        LOAD_AND_RUN, tmp_path / "model.so", tmp_path / "inputs.npz", tmp_path / "outputs.npz"
    )
    modules, counts = json.loads(printed)
    assert modules == []
    assert counts == executable.report().counts()
    assert placed in counts
    found = dict(np.load(tmp_path / "outputs.npz"))
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


LOAD_ANOTHER = """
import ctypes, sys
import numpy as np
import byoc_mlir
inputs = [np.ones(4, np.float32)] * 2
held = ctypes.CDLL(sys.argv[1])
byoc_mlir.load(sys.argv[1]).close()
print(byoc_mlir.load(sys.argv[2]).run(inputs)["y"].tolist())
"""


def test_a_file_that_someone_else_still_holds(tmp_path: Path) -> None:
    paths = [tmp_path / f"{op.lower()}.so" for op in ("Mul", "Add")]
    for path in paths:
        b = GraphBuilder(path.stem, seed=0, opset=13)
        x, y = b.input("x", [4]), b.input("z", [4])
        b.output(b.op(path.stem.capitalize(), x, y), "y", [4])
        byoc_mlir.compile(b.build(), targets=()).export_library(path)
    assert run_python(LOAD_ANOTHER, *paths).strip() == "[2.0, 2.0, 2.0, 2.0]"


LOAD_ALL = """
import sys
import numpy as np
import byoc_mlir
inputs = dict(np.load(sys.argv[1]))
for path in sys.argv[2:]:
    executable = byoc_mlir.load(path)
    np.savez(path + ".npz", **executable.run(inputs))
    print(executable.report().counts())
"""

NATIVE = ("ccompiler", "dnnl_c")
IN_PYTHON = ("dnnl_json", "examplejson", "onnxruntime")


def test_code_of_the_other_kinds_travels_inside(tmp_path: Path) -> None:
    paths: list[Path] = []
    for target in (*NATIVE, *IN_PYTHON):
        executable = byoc_mlir.compile(elementwise_model(), targets=(target,), fallback="forbid")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            executable.export_library(tmp_path / f"{target}.so")
        said = [str(warning.message) for warning in caught]
        assert len(said) == (target in IN_PYTHON)
        assert all(f"region {target}_main_0 runs in Python" in text for text in said)
        paths.append(tmp_path / f"{target}.so")
    inputs = inputs_for(byoc_mlir.load(paths[0]))
    np.savez(tmp_path / "inputs.npz", allow_pickle=False, **inputs)
    printed = run_python(LOAD_ALL, tmp_path / "inputs.npz", *paths)
    assert printed.splitlines() == [str({path.stem: 3}) for path in paths]
    expected = np.maximum(inputs["x"] + inputs["y"], 0) * inputs["y"]
    for path in paths:
        np.testing.assert_allclose(np.load(f"{path}.npz")["out"], expected, rtol=1e-6)


def test_the_source_of_a_region_travels_inside(tmp_path: Path) -> None:
    executable = byoc_mlir.compile(elementwise_model(), targets=("ccompiler",))
    executable.export_library(tmp_path / "model.so")
    with byoc_mlir.load(tmp_path / "model.so") as loaded:
        source = loaded.get_source("ccompiler_main_0")
    assert source == executable.get_source("ccompiler_main_0")


def test_one_file_is_loaded_twice_with_different_threads_and_callbacks(tmp_path: Path) -> None:
    executable = byoc_mlir.compile(elementwise_model(), targets=("examplejson",))
    with pytest.warns(UserWarning, match="Python"):
        executable.export_library(tmp_path / "model.so")
    inputs = inputs_for(executable)
    expected = executable.run(inputs)["out"]
    first = byoc_mlir.load(tmp_path / "model.so", threads=1)
    second = byoc_mlir.load(tmp_path / "model.so", threads=2)
    assert (first.threads, second.threads) == (1, 2)
    second.close()
    np.testing.assert_array_equal(first.run(inputs)["out"], expected)
    third = byoc_mlir.load(tmp_path / "model.so")
    first.close()
    np.testing.assert_array_equal(third.run(inputs)["out"], expected)
    with pytest.raises(ExecutionError, match="closed"):
        first.run(inputs)


def test_a_file_that_is_exported_anew_is_loaded_anew(tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    byoc_mlir.compile(NETWORKS["mlp3"](), targets=()).export_library(path)
    old = byoc_mlir.load(path)
    executable = byoc_mlir.compile(NETWORKS["mlp3"](seed=7), targets=())
    executable.export_library(path)
    new, inputs = byoc_mlir.load(path), inputs_for(executable)
    np.testing.assert_array_equal(new.run(inputs)["output"], executable.run(inputs)["output"])
    assert not np.array_equal(new.run(inputs)["output"], old.run(inputs)["output"])


def test_sizes_of_a_loaded_model_have_the_names_of_the_model(tmp_path: Path) -> None:
    model = parsed("(float[N, M] x) => (float[N, M] y)", "y = Relu (x)", opset=21)
    sizes = model.graph.input[0].type.tensor_type.shape.dim
    sizes[0].ClearField("dim_param")
    sizes[1].dim_param = "a size"
    with byoc_mlir.compile(model, targets=()) as executable:
        executable.run({"x": np.ones((2, 3), np.float32)})
        executable.export_library(tmp_path / "model.so")
        with byoc_mlir.load(tmp_path / "model.so") as loaded:
            assert loaded.inputs == executable.inputs
            shape = loaded.run({"x": np.ones((4, 5), np.float32)})["y"].shape
    assert shape == (4, 5)


def test_threads_run_one_loaded_model_at_once(tmp_path: Path) -> None:
    executable = byoc_mlir.compile(NETWORKS["mlp3"]())
    executable.export_library(tmp_path / "model.so")
    inputs = [inputs_for(executable, seed) for seed in range(4)]
    expected = [executable.run(one)["output"] for one in inputs]
    loaded = byoc_mlir.load(tmp_path / "model.so")

    def is_right(number: int) -> bool:
        return np.array_equal(loaded.run(inputs[number])["output"], expected[number])

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(is_right, [number % 4 for number in range(200)]))


def test_threads_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(ByocError, match="threads is 0, accepted are whole numbers, at least 1"):
        byoc_mlir.load(tmp_path / "model.so", threads=0)


def test_there_is_no_pickle_in_the_package() -> None:
    package = Path(byoc_mlir.__file__).parent
    imported = re.compile(
        r"^\s*(import|from) (pickle|cPickle|dill|cloudpickle|marshal|shelve)\b", re.M
    )
    sources = {path: path.read_text() for path in package.rglob("*.py")}
    assert len(sources) > 100
    assert [path.name for path, text in sources.items() if imported.search(text)] == []
    assert [path.name for path, text in sources.items() if "allow_pickle=True" in text] == []


def test_a_file_that_ends_while_it_is_copied_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with byoc_mlir.compile(elementwise_model(), targets=()) as executable:
        executable.export_library(tmp_path / "model.so")
    with byoc_mlir.load(tmp_path / "model.so"):  # the next one loads a copy
        monkeypatch.setattr(os, "sendfile", lambda *_: 0)
        with pytest.raises(InvalidArtifactError, match="ends after 0 of its"):
            byoc_mlir.load(tmp_path / "model.so")
