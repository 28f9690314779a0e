"""Key of the cache: it reflects the compiled model, whatever changes after `compile` was called."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import pytest
from cache_proof import WIDTH, factor_of, multiplied, weights
from onnx import TensorProto, helper, parser

import byoc_mlir
from byoc_mlir.compiler import pipeline
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.errors import InvalidModelError, UnsafeModelError
from byoc_mlir.frontend.files.external_data import ExternalFiles
from byoc_mlir.frontend.files.tensor_check import external_locations
from byoc_mlir.runtime.executable import Executable


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def answer(executable: Executable, rows: int = 3) -> float:
    (found,) = np.unique(executable.run({"x": np.ones((rows, WIDTH), np.float32)})["y"])
    return float(found)


@pytest.mark.parametrize("interpreter", ["on", "off"])
def test_a_file_that_changes_before_the_first_run(
    cache: Path, tmp_path: Path, interpreter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOC_INTERPRETER", interpreter)
    path, unchanged = tmp_path / "m.onnx", tmp_path / "old.onnx"
    for file in (path, unchanged):
        file.write_bytes(multiplied(2, "n"))
    with byoc_mlir.compile(path, cache=cache) as executable:
        path.write_bytes(multiplied(7, "n"))
        assert answer(executable) == 2
        executable.wait()
        assert answer(executable) == 2
    assert factor_of(unchanged, cache) == 2
    assert factor_of(path, cache) == 7


def test_a_file_that_changes_between_its_hash_and_its_compilation(
    cache: Path, tmp_path: Path
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(multiplied(2, 3))
    opened = byoc_mlir.compiler.api.known_model

    def changed(cached: Any) -> Any:
        path.write_bytes(multiplied(7, 3))
        return opened(cached)

    with patch.object(byoc_mlir.compiler.api, "known_model", changed):
        assert factor_of(path, cache) == 7
    path.write_bytes(multiplied(2, 3))
    assert factor_of(path, cache) == 2


def _reshaped(factor: int) -> onnx.ModelProto:
    """Returns a model that is compiled for each value of `s`."""
    return parser.parse_model(f"""
        <ir_version: 10, opset_import: ["": 20]> g (float[n, m] x, int64[k] s) => (float[] y)
        <float w = {{{factor}}}> {{ t = Mul (x, w) y = Reshape (t, s) }}
    """)


def _first(executable: Executable, *shape: int) -> float:
    x = np.ones((2, shape[0] * shape[1] // 2), np.float32)
    found = executable.run({"x": x, "s": np.array(shape)})["y"]
    assert found.shape == shape
    return float(found[0, 0])


@pytest.mark.parametrize("place", ["cold", "warm", "none"])
def test_a_message_that_changes_before_the_first_run(cache: Path, place: str) -> None:
    model, folder = _reshaped(2), cache if place != "none" else False
    if place == "warm":
        assert _first(byoc_mlir.compile(model, (), cache=folder), 2, 3) == 2
    executable = byoc_mlir.compile(model, (), cache=folder)
    model.CopyFrom(_reshaped(7))
    assert _first(executable, 4, 3) == 2
    assert _first(byoc_mlir.compile(_reshaped(2), (), cache=folder), 4, 3) == 2


def test_another_folder_before_the_first_run(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, factor in (("one", 2), ("other", 7)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.onnx").write_bytes(multiplied(factor, "n"))
    for _ in range(2):  # from the cache, a new shape is compiled
        monkeypatch.chdir(tmp_path / "one")
        executable = byoc_mlir.compile("m.onnx", (), cache="cache")
        monkeypatch.chdir(tmp_path / "other")
        assert answer(executable) == 2
    assert not (tmp_path / "other" / "cache").exists()
    monkeypatch.chdir(tmp_path / "one")
    assert factor_of(Path("m.onnx"), Path("cache")) == 2


def test_options_that_change_before_the_first_run(cache: Path) -> None:
    model, sizes = _reshaped(2), {"n": 2}
    byoc_mlir.compile(model, (), cache=cache, sizes=sizes)
    warm = byoc_mlir.compile(model, (), cache=cache, sizes=sizes)
    sizes["n"] = 5
    assert _first(warm, 4, 3) == 2


def test_a_variable_that_changes_before_the_first_run(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = multiplied(2, "n")
    executable = byoc_mlir.compile(model, ("dnnl",), cache=cache, fallback="allow")
    known = set(cache.iterdir())
    monkeypatch.setenv("ONEDNN_CPU_ISA_HINTS", "NO_HINTS")
    assert answer(executable) == 2
    programs = {path for path in set(cache.iterdir()) - known if path.stat().st_size > 4096}
    assert not programs


def test_a_file_that_changed_is_not_compiled_for_further_shapes(
    cache: Path, tmp_path: Path
) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(_reshaped(2), path)
    assert _first(byoc_mlir.compile(path, (), cache=cache), 2, 3) == 2
    warm = byoc_mlir.compile(path, (), cache=cache)
    onnx.save(_reshaped(7), path)
    assert _first(warm, 2, 3) == 2
    with pytest.raises(InvalidModelError, match="was changed after the model was compiled"):
        _first(warm, 4, 3)


def _in_place(file: Path) -> None:
    file.write_bytes(weights(7))


def _in_place_of_another(file: Path) -> None:
    (file.parent / "fresh").write_bytes(weights(7))
    (file.parent / "fresh").replace(file)


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Returns the path of a model whose weights are in a separate file."""
    path = tmp_path / "model" / "m.onnx"
    path.parent.mkdir()
    path.write_bytes(multiplied(2, 3, "w.bin"))
    path.with_name("w.bin").write_bytes(weights(2))
    return path


@pytest.mark.parametrize("change", [_in_place, _in_place_of_another])
@pytest.mark.parametrize("when", ["before", "after"])
def test_external_data_that_changes_while_it_is_compiled(
    change: Callable[[Path], None], when: str, cache: Path, parts: Path
) -> None:
    unchanged = parts.parent.with_name("unchanged")
    shutil.copytree(parts.parent, unchanged)
    build = pipeline.build_program

    def changed(*arguments: Any) -> Any:
        if when == "before":
            change(parts.with_name("w.bin"))
        program = build(*arguments)
        change(parts.with_name("w.bin"))
        return program

    with patch.object(pipeline, "build_program", changed):
        found = factor_of(parts, cache)
    assert found == (None if change is _in_place else 2)
    assert factor_of(unchanged / "m.onnx", cache) == 2
    assert factor_of(parts, cache) == 7


def test_external_data_that_changes_later_serves_no_other_model(
    cache: Path, parts: Path, tmp_path: Path
) -> None:
    shutil.copytree(parts.parent, tmp_path / "copy")
    held = ExternalFiles(parts)
    array = np.frombuffer(held.data("w.bin", "w"), np.float32)
    handle = Weight.of("w", array)
    _in_place(parts.with_name("w.bin"))
    assert handle.data[0] == 7
    assert factor_of(tmp_path / "copy" / "m.onnx", cache) == 2


def test_external_data_of_attributes_matters(cache: Path, tmp_path: Path) -> None:
    def external(name: str, element: int, count: int) -> TensorProto:
        tensor = TensorProto(name=name, data_type=element, dims=[count])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"{name}.bin")
        return tensor

    values, indices = external("v", TensorProto.FLOAT, 1), external("i", TensorProto.INT64, 1)
    sparse = onnx.SparseTensorProto(values=values, indices=indices, dims=[3])
    nodes = [
        helper.make_node("Constant", [], ["c"], sparse_value=sparse),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", infos[:1], infos[1:]), ir_version=10)
    assert external_locations(model) == {"v.bin", "i.bin"}


def test_external_data_decides_where_a_model_is_cut(cache: Path, tmp_path: Path) -> None:
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["": 20]> g (float[6] x) => (float[] z) {
            y = Relu (x) p = NonZero (y) q = Squeeze (p) k = Gather (y, q) z = Mul (k, w) }
    """)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    model.graph.initializer.append(tensor)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    for factor in (2, 2, 7, 7):
        (tmp_path / "w.bin").write_bytes(np.float32(factor).tobytes())
        found = byoc_mlir.compile(path, (), cache=cache).run({"x": np.ones(6, np.float32)})
        assert found["z"].tolist() == [factor] * 6


def test_refusals_are_the_same_where_the_cache_has_the_model(cache: Path, parts: Path) -> None:
    assert [factor_of(parts, cache) for _ in range(2)] == [2, 2]
    data, outside = parts.with_name("w.bin"), parts.parent.with_name("w.bin")
    data.rename(outside)
    data.symlink_to(outside)
    with pytest.raises(UnsafeModelError, match="leads out of the model's folder"):
        byoc_mlir.compile(parts, (), cache=cache)


@pytest.mark.parametrize("location", ["/etc/hostname", "../w.bin", "link"])
def test_external_data_is_refused_before_it_is_opened(
    location: str, cache: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model" / "m.onnx"
    path.parent.mkdir()
    (tmp_path / "w.bin").write_bytes(weights(2))
    path.with_name("link").symlink_to("../w.bin")
    path.write_bytes(multiplied(2, 3, location))
    opened = os.open
    with (
        patch.object(os, "open", side_effect=opened) as spied,
        pytest.raises(UnsafeModelError),
    ):
        byoc_mlir.compile(path, (), cache=cache)
    names = {os.path.basename(str(call.args[0])) for call in spied.call_args_list}
    assert names.isdisjoint({"hostname", "w.bin", "link"})


def _by_link(entry: Path) -> None:
    target = entry.parent.with_name(entry.name)
    entry.rename(target)
    entry.symlink_to(target)


@pytest.mark.parametrize(
    "damage", [_by_link, lambda entry: entry.chmod(0o620), lambda entry: entry.chmod(0o602)]
)
def test_entries_that_others_may_have_written_are_not_used(
    damage: Callable[[Path], None], cache: Path
) -> None:
    model = multiplied(2, 3)
    byoc_mlir.compile(model, (), cache=cache)
    for entry in cache.glob("*.byoc"):
        damage(entry)
    with patch.object(pipeline, "build_program", side_effect=pipeline.build_program) as built:
        assert answer(byoc_mlir.compile(model, (), cache=cache)) == 2
    assert built.called


def test_entries_are_the_users_own_whatever_the_umask(cache: Path) -> None:
    before = os.umask(0)
    try:
        byoc_mlir.compile(multiplied(2, 3), (), cache=cache)
    finally:
        os.umask(before)
    assert {entry.stat().st_mode & 0o777 for entry in cache.iterdir()} == {0o600}
