"""Compiled models are found in the cache again, but only if nothing has changed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import pytest
from artifact_files import elementwise_model, inputs_for, run_python
from helpers.models import parsed
from test_refusals import staged_model, symbolic_model

import byoc_mlir
from byoc_mlir import files
from byoc_mlir.backends import Backend, CodegenContext, CSource, register_backend
from byoc_mlir.compiler import dynamic, pipeline
from byoc_mlir.compiler.cache import fingerprint, folder, stored_programs
from byoc_mlir.compiler.cache.folder import Cache
from byoc_mlir.compiler.execution.programs import ModelPrograms
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.dims import Guard, SymbolInfo, symbol
from byoc_mlir.errors import ByocError, InvalidArtifactError, UnsafeCacheError
from byoc_mlir.frontend.files import external_data
from byoc_mlir.frontend.files.external_data import ExternalFiles
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.files import container
from byoc_mlir.runtime.files.serialise import decode, encode
from byoc_mlir.runtime.symbolic_sizes import SymbolicSizes
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.networks.encoder import symbolised
from byoc_mlir.testing.reference import assert_agrees, random_inputs
from byoc_mlir.tools.byoc import main


def was_cached(executable: Executable) -> bool:
    """True if the program used last came from the cache."""
    return [name for name, _ in executable.report().compile_seconds] == ["cache"]


def entries(cache: Path) -> set[Path]:
    """Returns the files of a cache."""
    return set(cache.iterdir())


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


COMPILE = """
import json, sys
import numpy as np
import byoc_mlir
executable = byoc_mlir.compile(sys.argv[1], cache=sys.argv[2])
outputs = executable.run(dict(np.load(sys.argv[3])))
np.savez(sys.argv[4], **outputs)
modules = [name for name in ("onnx", "xdsl") if name in sys.modules]
print(json.dumps([modules, [name for name, _ in executable.report().compile_seconds]]))
"""


def test_the_second_process_compiles_nothing(cache: Path, tmp_path: Path) -> None:
    model, inputs = tmp_path / "model.onnx", tmp_path / "inputs.npz"
    onnx.save(NETWORKS["mnist"](), model)
    np.savez(inputs, allow_pickle=False, **random_inputs(NETWORKS["mnist"](), seed=0))
    results = [tmp_path / "first.npz", tmp_path / "second.npz"]
    first, second = (json.loads(run_python(COMPILE, model, cache, inputs, one)) for one in results)
    assert first[0] == ["onnx", "xdsl"]
    assert "lower" in first[1]
    assert second == [[], ["cache"]]
    computed, found = (np.load(result)["output"] for result in results)
    np.testing.assert_array_equal(found, computed)


def test_all_forms_of_a_model_are_cached(cache: Path, tmp_path: Path) -> None:
    model = elementwise_model()
    onnx.save(model, tmp_path / "model.onnx")
    forms = [model, model.SerializeToString(), tmp_path / "model.onnx"]
    for form in forms:
        first = byoc_mlir.compile(form, targets=(), cache=cache)
        second = byoc_mlir.compile(form, targets=(), cache=cache)
        inputs = inputs_for(first)
        assert was_cached(second)
        np.testing.assert_array_equal(first.run(inputs)["out"], second.run(inputs)["out"])
        assert second.report().rows == first.report().rows


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a user's home directory; no variable sets the cache's folder."""
    for variable in ("BYOC_CACHE", "BYOC_CACHE_DIR", "BYOC_CACHE_BYTES", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_models_are_cached_in_the_users_folder(home: Path) -> None:
    byoc_mlir.compile(elementwise_model(), targets=())
    folder = home / ".cache" / "byoc_mlir"
    assert len(entries(folder)) == 2
    assert folder.stat().st_mode & 0o777 == 0o700
    assert was_cached(byoc_mlir.compile(elementwise_model(), targets=()))


def test_a_variable_names_another_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYOC_CACHE_DIR", str(home / "named"))
    byoc_mlir.compile(elementwise_model(), targets=())
    assert len(entries(home / "named")) == 2
    assert entries(home) == {home / "named"}


def test_the_cache_can_be_switched_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    byoc_mlir.compile(elementwise_model(), targets=(), cache=False)
    monkeypatch.setenv("BYOC_CACHE", "off")
    byoc_mlir.compile(elementwise_model(), targets=())
    assert entries(home) == set()
    monkeypatch.setenv("BYOC_CACHE", "no")
    with pytest.raises(
        ByocError, match="BYOC_CACHE is 'no', accepted are 'on', 'calibration' and 'off'"
    ):
        byoc_mlir.compile(elementwise_model(), targets=())


def _home_is_a_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").touch()
    monkeypatch.setenv("HOME", str(home / "file"))


def _no_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_absolute", lambda self: False)


def _others_write(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".cache" / "byoc_mlir").mkdir(parents=True)
    (home / ".cache" / "byoc_mlir").chmod(0o777)


def _disk_is_full(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(home))

    monkeypatch.setattr(folder, "write_container", write)


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (_home_is_a_file, "cannot be made: Not a directory; BYOC_CACHE_DIR names another folder"),
        (_no_home, "this user has no home"),
        (_others_write, "others may write to it"),
        (_disk_is_full, "cannot be written: No space left on device"),
    ],
)
def test_a_home_that_cannot_be_written_is_one_warning(
    trouble: Callable[[Path, pytest.MonkeyPatch], None],
    said: str,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trouble(home, monkeypatch)
    with pytest.warns(UserWarning, match="nothing is cached") as caught:
        executables = [byoc_mlir.compile(elementwise_model(), targets=()) for _ in range(2)]
    for executable in executables:
        executable.run(inputs_for(executable))
    assert len(caught) == 1
    assert said in str(caught[0].message)


def test_a_folder_that_is_only_read_serves_as_well(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    byoc_mlir.compile(elementwise_model(), targets=(), cache=cache)

    def touch(path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(os, "utime", touch)
    assert was_cached(byoc_mlir.compile(elementwise_model(), targets=(), cache=cache))


def test_what_a_killed_process_left_is_deleted(cache: Path) -> None:
    cache.mkdir(mode=0o700)
    old, new = (cache / f".key.byoc.{token}" for token in ("1234", "5678"))
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    byoc_mlir.compile(elementwise_model(), targets=(), cache=cache)
    assert not old.exists()
    assert new.exists()


def _other_weights() -> onnx.ModelProto:
    return NETWORKS["mlp3"](seed=1)


@pytest.mark.parametrize(
    "change",
    [
        {"model": _other_weights},
        {"threads": 1},
        {"targets": ("dnnl",)},
        {"targets": ("dnnl{winograd=off}",)},
        {"fallback": "allow"},
        {"prune": "estimated"},
    ],
    ids=lambda change: "-".join(change),
)
def test_every_choice_matters(cache: Path, change: dict[str, Any]) -> None:
    def compiled(model: Callable[[], onnx.ModelProto] = NETWORKS["mlp3"], **options: Any):
        chosen = {"targets": (), "threads": 2, **options}
        return byoc_mlir.compile(model(), cache=cache, **chosen)

    compiled()
    assert was_cached(compiled())
    assert not was_cached(compiled(**change))
    assert was_cached(compiled(**change))


def _other_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Cpu.host()
    other = Cpu(host.architecture, host.features[1:])
    monkeypatch.setattr(Cpu, "host", staticmethod(lambda: other))


def _other_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "installed_version", lambda package: f"{package} 99")


def _other_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "_folder_stamps", lambda folder: [[str(folder), "changed"]])


def _other_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_programs, "stamp", lambda path: "changed")


def _no_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "find_openmp", lambda: None)


@pytest.mark.parametrize(
    "change", [_other_processor, _other_versions, _other_source, _other_library, _no_openmp]
)
def test_processor_and_software_matter(
    cache: Path, change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    software = fingerprint._software.__wrapped__
    monkeypatch.setattr(fingerprint, "_software", software)  # not remembered by the process
    monkeypatch.setattr(fingerprint, "_folder_stamps", lambda folder: [[str(folder), "as it is"]])
    model = NETWORKS["mlp3"]()

    def compiled() -> bool:
        return was_cached(byoc_mlir.compile(model, targets=("dnnl",), cache=cache))

    assert [compiled(), compiled()] == [False, True]
    change(monkeypatch)
    assert [compiled(), compiled()] == [False, True]


def test_environment_variables_of_backends_matter(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = NETWORKS["mlp3"]()
    byoc_mlir.compile(model, targets=("dnnl",), cache=cache)
    assert was_cached(byoc_mlir.compile(model, targets=("dnnl",), cache=cache))
    monkeypatch.setenv("ONEDNN_CPU_ISA_HINTS", "NO_HINTS")
    assert not was_cached(byoc_mlir.compile(model, targets=("dnnl",), cache=cache))


def test_external_data_matters(cache: Path, tmp_path: Path) -> None:
    weights = {"w": np.arange(64, dtype=np.float32)}
    model = parsed("(float[64] x) => (float[64] y)", "y = Add (x, w)", weights)
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    inputs = {"x": np.zeros(64, np.float32)}

    def answer() -> tuple[bool, float]:
        executable = byoc_mlir.compile(path, targets=(), cache=cache)
        return was_cached(executable), float(executable.run(inputs)["y"].sum())

    assert answer() == (False, 2016.0)
    assert answer() == (True, 2016.0)
    data = tmp_path / "weights.bin"
    data.write_bytes((np.arange(64, dtype=np.float32) * 2).tobytes())
    assert answer() == (False, 4032.0)
    assert answer() == (True, 4032.0)


def test_a_damaged_entry_is_compiled_again(cache: Path) -> None:
    model = elementwise_model()
    executable = byoc_mlir.compile(model, targets=(), cache=cache)
    inputs = inputs_for(executable)
    expected = executable.run(inputs)["out"]
    damages = (
        lambda data: b"",
        lambda data: data[:-9],
        lambda data: data[:-80] + b"x" + data[-79:],
    )
    for damage in damages:
        for path in entries(cache):
            path.write_bytes(damage(path.read_bytes()))
        again = byoc_mlir.compile(model, targets=(), cache=cache)
        assert not was_cached(again)
        np.testing.assert_array_equal(again.run(inputs)["out"], expected)
        assert was_cached(byoc_mlir.compile(model, targets=(), cache=cache))


def test_an_entry_under_the_name_of_another_is_not_used(cache: Path) -> None:
    models = [NETWORKS["mlp3"](seed=seed) for seed in range(2)]
    inputs = random_inputs(models[0])
    expected = [byoc_mlir.compile(one, (), cache=cache).run(inputs)["output"] for one in models]
    contents = {path: path.read_bytes() for path in entries(cache)}
    for path in contents:
        for other in contents.keys() - {path}:
            path.write_bytes(contents[other])
            for model, wanted in zip(models, expected, strict=True):
                again = byoc_mlir.compile(model, (), cache=cache)
                np.testing.assert_array_equal(again.run(inputs)["output"], wanted)


def test_the_program_for_all_sizes_is_cached(cache: Path) -> None:
    model = symbolised(NETWORKS["mlp3"](), {"input": {0: "batch"}})
    inputs = {size: random_inputs(model, 0, {"batch": size}) for size in (2, 5, 1)}
    first = byoc_mlir.compile(model, targets=(), cache=cache)
    expected = {size: first.run(arrays)["output"] for size, arrays in inputs.items()}
    assert not was_cached(first)
    second = byoc_mlir.compile(model, targets=(), cache=cache)
    for size, arrays in inputs.items():
        np.testing.assert_array_equal(second.run(arrays)["output"], expected[size])
        assert was_cached(second)
    before = entries(cache)
    second.run(random_inputs(model, 0, {"batch": 7}))
    assert was_cached(second)
    assert entries(cache) == before


@pytest.mark.parametrize(
    "changed",
    [{"arena": "n +"}, {"guards": [{"one": "n", "relation": "~", "two": 3, "reason": ""}]}],
)
def test_sizes_that_say_nothing_are_refused(changed: dict[str, Any]) -> None:
    sizes = SymbolicSizes((SymbolInfo("n"),), (Guard(symbol("n"), "!=", 3),), 8 * symbol("n"))
    document = encode(sizes, [])
    assert isinstance(document, dict)
    assert decode(SymbolicSizes, document, ()) == sizes
    with pytest.raises(InvalidArtifactError):
        decode(SymbolicSizes, {**document, **changed}, ())


def test_that_a_model_needs_numbers_is_known_to_the_next_process(cache: Path) -> None:
    model = parsed("(float[n, 2, h, 8] x) => (y)", "y = MaxPool <kernel_shape = [2, 2]> (x)")
    inputs = {"x": np.random.default_rng(0).standard_normal((1, 2, 5, 8)).astype(np.float32)}
    expected = byoc_mlir.compile(model, targets=(), cache=cache).run(inputs)
    with patch.object(ModelPrograms, "_read_once", None):  # it compiles nothing
        again = byoc_mlir.compile(model, targets=(), cache=cache)
        np.testing.assert_array_equal(again.run(inputs)["y"], expected["y"])
    assert was_cached(again)


def test_every_shape_of_a_symbolic_model_is_cached(cache: Path) -> None:
    def run(executable: Executable, size: int) -> bool:
        array = np.random.default_rng(size).standard_normal((size, 3)).astype(np.float32)
        np.testing.assert_array_equal(executable.run({"x": array})["y"], np.maximum(array, 0))
        return was_cached(executable)

    first = byoc_mlir.compile(symbolic_model(), targets=("dnnl",), cache=cache)
    assert [run(first, size) for size in (2, 5)] == [False, False]
    second = byoc_mlir.compile(symbolic_model(), targets=("dnnl",), cache=cache)
    assert [run(second, size) for size in (5, 2, 7)] == [True, True, False]


def test_programs_of_all_shapes_have_their_weights_stored_once(cache: Path) -> None:
    model = symbolised(NETWORKS["mlp3"](), {"input": {0: "batch"}})
    weights = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    inputs = {size: random_inputs(model, 0, {"batch": size}) for size in (2, 5, 9)}
    first = byoc_mlir.compile(model, targets=("dnnl",), cache=cache)
    expected = {size: first.run(arrays)["output"] for size, arrays in inputs.items()}
    stored = sum(path.stat().st_size for path in entries(cache))
    assert stored < 2.5 * weights  # the model's, and those that are packed
    second = byoc_mlir.compile(model, targets=("dnnl",), cache=cache)
    for size, arrays in inputs.items():
        np.testing.assert_array_equal(second.run(arrays)["output"], expected[size])
        assert was_cached(second)


def test_programs_whose_weights_are_gone_are_compiled_again(cache: Path) -> None:
    model = NETWORKS["mlp3"]()
    inputs = random_inputs(model)
    expected = byoc_mlir.compile(model, targets=(), cache=cache).run(inputs)
    largest = max(entries(cache), key=lambda path: path.stat().st_size)
    for damage in (Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-9])):
        damage(largest)
        again = byoc_mlir.compile(model, targets=(), cache=cache)
        assert not was_cached(again)
        assert_agrees(again.run(inputs), expected)
        assert was_cached(byoc_mlir.compile(model, targets=(), cache=cache))


def value_model() -> onnx.ModelProto:
    """Returns the model `y = reshape(x, shape)`: the output's shape is in an input."""
    return parsed("(float[6] x, int64[2] shape) => (float[a, b] y)", "y = Reshape (x, shape)")


def test_values_that_are_compiled_in_matter(cache: Path) -> None:
    x = np.arange(6, dtype=np.float32)

    def run(executable: Executable, *shape: int) -> bool:
        found = executable.run({"x": x, "shape": np.array(shape)})["y"]
        np.testing.assert_array_equal(found, x.reshape(shape))
        return was_cached(executable)

    first = byoc_mlir.compile(value_model(), targets=(), cache=cache)
    assert [run(first, 2, -1), run(first, -1, 2)] == [False, False]
    second = byoc_mlir.compile(value_model(), targets=(), cache=cache)
    assert [run(second, -1, 2), run(second, 2, -1), run(second, 6, -1)] == [True, True, False]


def test_values_that_are_sizes_do_not(cache: Path) -> None:
    x = np.arange(6, dtype=np.float32)
    for shapes in ([(2, 3), (3, 2)], [(3, 2), (6, 1)]):
        executable = byoc_mlir.compile(value_model(), targets=(), cache=cache)
        for shape in shapes:
            found = executable.run({"x": x, "shape": np.array(shape)})["y"]
            np.testing.assert_array_equal(found, x.reshape(shape))
    assert was_cached(executable)


def test_warnings_are_given_again(cache: Path) -> None:
    model = NETWORKS["mlp3"]()
    for expected in (False, True):
        with pytest.warns(UserWarning, match="heavy node"):
            executable = byoc_mlir.compile(model, targets=("examplejson",), cache=cache)
        assert was_cached(executable) == expected


def test_code_of_all_kinds_is_cached(cache: Path) -> None:
    for target in ("ccompiler", "examplejson"):
        first = byoc_mlir.compile(elementwise_model(), targets=(target,), cache=cache)
        second = byoc_mlir.compile(elementwise_model(), targets=(target,), cache=cache)
        assert was_cached(second)
        inputs = inputs_for(first)
        np.testing.assert_array_equal(first.run(inputs)["out"], second.run(inputs)["out"])
        assert second.report().counts()[target] > 0


def test_a_backend_may_refuse(cache: Path) -> None:
    @register_backend
    class Moody(Backend):
        name = "moody"
        is_cacheable = False

        def op_rules(self):
            return {"nn.relu": lambda op: None}

        def codegen(self, region: Any, context: CodegenContext) -> CSource:
            name = region.sym_name.data
            loop = "for (int i = 0; i < 24; i++) y[i] = x[i] < 0 ? 0 : x[i]; return 0;"
            return CSource(f"int {name}(const float *x, float *y) {{ {loop} }}")

    for _ in range(2):
        executable = byoc_mlir.compile(elementwise_model(), targets=("moody",), cache=cache)
        assert executable.report().counts()["moody"] == 1
        assert not was_cached(executable)
    assert entries(cache) == set()


REPLACED = """
from byoc_mlir.backends import Backend, register_backend

@register_backend
class Replaced(Backend):
    name = "replaced"

    def op_rules(self):
        return {rules}

    def codegen(self, region, context):
        raise NotImplementedError  # its rules take nothing
"""


def test_a_backend_that_replaces_another_is_another(cache: Path, tmp_path: Path) -> None:
    """Checks a session that defines a backend again: both files were there before."""
    rules = {"one.py": "{}", "other.py": '{"nn.relu": lambda op: "never"}'}
    for name, text in rules.items():
        (tmp_path / name).write_text(REPLACED.format(rules=text))
    for name in rules:
        path = tmp_path / name
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "session"})
        executable = byoc_mlir.compile(elementwise_model(), ("replaced",), cache=cache)
        assert not was_cached(executable)
        again = byoc_mlir.compile(elementwise_model(), ("replaced",), cache=cache)
        assert was_cached(again)


def test_the_stages_of_a_model_are_kept(cache: Path) -> None:
    model = staged_model()
    inputs = {"x": np.array([0, 1, 0, 2], np.float32)}
    with byoc_mlir.compile(model, targets=(), cache=cache) as executable:
        np.testing.assert_array_equal(executable.run(inputs)["y"], [[1, 3]])
    kept = entries(cache)
    assert kept
    with (
        patch.object(pipeline, "build_program", side_effect=AssertionError),
        patch.object(dynamic, "build_dynamic", side_effect=AssertionError),
        byoc_mlir.compile(model, targets=(), cache=cache) as executable,
    ):
        np.testing.assert_array_equal(executable.run(inputs)["y"], [[1, 3]])
    assert entries(cache) == kept


def test_the_second_process_cuts_nothing_into_stages(cache: Path, tmp_path: Path) -> None:
    model, inputs = tmp_path / "model.onnx", tmp_path / "inputs.npz"
    onnx.save(staged_model(), model)
    np.savez(inputs, allow_pickle=False, x=np.array([0, 1, 0, 2], np.float32))
    results = [tmp_path / "first.npz", tmp_path / "second.npz"]
    first, second = (json.loads(run_python(COMPILE, model, cache, inputs, one)) for one in results)
    assert first[0] == ["onnx", "xdsl"]
    assert second[0] == []
    for result in results:
        np.testing.assert_array_equal(np.load(result)["y"], [[1, 3]])


def test_a_stage_that_was_not_run_is_compiled_later(cache: Path) -> None:
    model, inputs = staged_model(), {"x": np.array([0, 1, 0, 2], np.float32)}
    byoc_mlir.compile(model, targets=(), cache=cache).close()
    first_stage = entries(cache)
    for _ in range(2):
        with byoc_mlir.compile(model, targets=(), cache=cache) as executable:
            np.testing.assert_array_equal(executable.run(inputs)["y"], [[1, 3]])
    assert entries(cache) > first_stage


def test_a_stage_without_its_programs_is_compiled_again(cache: Path) -> None:
    model, inputs = staged_model(), {"x": np.array([0, 1, 0, 2], np.float32)}
    with byoc_mlir.compile(model, targets=(), cache=cache) as executable:
        executable.run(inputs)
    with (
        patch.object(stored_programs.StoredPrograms, "read", return_value=None),
        byoc_mlir.compile(model, targets=(), cache=cache) as executable,
    ):
        np.testing.assert_array_equal(executable.run(inputs)["y"], [[1, 3]])


def test_the_folder_stays_small(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = NETWORKS["mlp3"](seed=1)
    byoc_mlir.compile(NETWORKS["mlp3"](), targets=(), threads=1, cache=cache)
    size = sum(path.stat().st_size for path in entries(cache))
    old = entries(cache)
    for path in old:
        os.utime(path, (0, 0))
    monkeypatch.setenv("BYOC_CACHE_BYTES", str(int(1.5 * size)))
    byoc_mlir.compile(model, targets=(), threads=2, cache=cache)
    assert not entries(cache) & old
    assert was_cached(byoc_mlir.compile(model, targets=(), threads=2, cache=cache))
    monkeypatch.setenv("BYOC_CACHE_BYTES", "a lot")
    with pytest.raises(ByocError, match="BYOC_CACHE_BYTES is 'a lot'"):
        byoc_mlir.compile(model, cache=cache)


def test_the_command_line_says_what_is_there_and_deletes_it(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    byoc_mlir.compile(elementwise_model(), targets=())
    assert main(["cache"]) == 0
    said = capsys.readouterr().out
    assert f"{home}/.cache/byoc_mlir: 2 files" in said
    assert all(f"BYOC_CACHE{end} " in said for end in ("", "_DIR", "_BYTES"))
    assert main(["cache", "--clear"]) == 0
    assert "2 files" in (said := capsys.readouterr().out)
    assert "deleted" in said
    assert entries(home / ".cache" / "byoc_mlir") == set()
    assert main(["cache", str(home / "another")]) == 0
    assert "another: 0 files" in capsys.readouterr().out
    monkeypatch.setenv("BYOC_CACHE", "off")
    assert main(["cache"]) == 0
    assert "nothing is cached: BYOC_CACHE is off" in capsys.readouterr().out


def test_others_must_not_write_to_the_folder(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(UnsafeCacheError, match="chmod go-w"):
        byoc_mlir.compile(elementwise_model(), cache=cache)


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ByocError, match="cannot be made"):
        byoc_mlir.compile(elementwise_model(), cache=tmp_path / "file")


def test_processes_share_the_folder(cache: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    onnx.save(elementwise_model(), model)
    inputs: dict[str, Any] = {name: np.ones((4, 6), np.float32) for name in ("x", "y")}
    np.savez(tmp_path / "in.npz", allow_pickle=False, **inputs)

    def work(number: int) -> float:
        output = tmp_path / f"out{number}.npz"
        run_python(COMPILE, model, cache, tmp_path / "in.npz", output)
        return float(np.load(output)["out"].sum())

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, range(2))) == [48.0] * 2
    printed = run_python(COMPILE, model, cache, tmp_path / "in.npz", tmp_path / "out.npz")
    assert json.loads(printed) == [[], ["cache"]]
    assert all(path.suffix == ".byoc" for path in entries(cache))


def test_large_entries_are_hashed_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that a change in place is found, even if size and date stay."""
    opened = Cache.open(cache)
    assert opened is not None
    opened.write("ab", {}, [bytes(1 << 21)])
    hashed: list[int] = []

    def sha256(data: memoryview) -> object:
        hashed.append(len(data))
        return hashlib.sha256(data)

    monkeypatch.setattr(container, "hashlib", SimpleNamespace(sha256=sha256))
    assert opened.read("ab") is not None
    assert max(hashed) < 1 << 21
    path = cache / "ab.byoc"
    os.utime(path, (0, 0))
    with patch.object(Cache, "write"):
        assert opened.read("ab") is not None
    assert max(hashed) > 1 << 21
    assert path.stat().st_mtime > 0, "it counts as used"
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b"changed")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert opened.read("ab") is None
    assert not path.exists()


def test_data_files_are_hashed_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finds a change in place, with the size and the date of before."""
    data = tmp_path / "weights.bin"
    data.write_bytes(bytes(1 << 16))

    def known_and_digest() -> tuple[bool, str]:
        opened = Cache.open(cache)
        assert opened is not None
        before = len(opened.entries())
        found = ExternalFiles(tmp_path / "model.onnx").digest("weights.bin", opened.digests)
        return len(opened.entries()) == before, found

    expected = hashlib.sha256(bytes(1 << 16)).hexdigest()
    assert known_and_digest() == (True, expected), "a new file may still change unnoticed"
    monkeypatch.setattr(files, "_WRITTEN_BACK_SECONDS", -1e9)
    monkeypatch.setattr(external_data, "_COARSEST_SECONDS", -1e9)
    assert known_and_digest() == (False, expected)
    with monkeypatch.context() as patched:
        patched.setattr(external_data, "hashlib", None)
        assert known_and_digest() == (True, expected)
    status = data.stat()
    with data.open("r+b") as file:
        file.write(b"changed")
    os.utime(data, ns=(status.st_atime_ns, status.st_mtime_ns))
    changed = hashlib.sha256(data.read_bytes()).hexdigest()
    assert known_and_digest() == (False, changed)


def test_models_are_hashed_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finds a change in place, with the size and the date of before."""
    path, opened = tmp_path / "model.onnx", Cache.open(cache)
    path.write_bytes(bytes(1 << 20))
    assert opened is not None

    def digest() -> str:
        found = Snapshot.found(path, opened.digests)
        assert found is not None
        return found.digest

    expected = hashlib.sha256(bytes(1 << 20)).hexdigest()
    assert digest() == expected
    assert not opened.entries(), "a new file may still change unnoticed"
    monkeypatch.setattr(files, "_WRITTEN_BACK_SECONDS", -1e9)
    assert digest() == expected
    assert len(opened.entries()) == 1
    with monkeypatch.context() as patched:
        patched.setattr(hashlib, "file_digest", None)
        assert digest() == expected
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b"changed")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digest() == hashlib.sha256(path.read_bytes()).hexdigest() != expected
