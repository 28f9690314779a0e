"""`compile` of files: another process compiles them while an interpreter answers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import byoc_mlir
from byoc_mlir.compiler.cache import fingerprint
from byoc_mlir.compiler.execution import at_once, compiling_process
from byoc_mlir.errors import InvalidInputError, InvalidModelError
from byoc_mlir.interpreter.model import InterpretedModel
from byoc_mlir.runtime.execution.tier import LoadedTier
from byoc_mlir.tensors import Array
from byoc_mlir.testing.networks import decoder
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime
from byoc_mlir.tools.byoc import main

_SUM = "s = Add(x, y) z = Relu(s)"
_HEAD = '<ir_version: 10, opset_import: ["": 21]>'


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Enables tiered execution, which other tests disable; hides registrations of other tests, and
    leaves no compilation to the next test.
    """
    monkeypatch.setenv("BYOC_INTERPRETER", "on")
    for kind in ("classes", "importers"):
        monkeypatch.setattr(fingerprint, f"_registered_{kind}", list)
    yield
    compiling_process._wait_for_all()


def _file(folder: Path, body: str = _SUM, size: str = "n") -> Path:
    tensor = f"float[{size}, 4]"
    text = f"{_HEAD} g ({tensor} x, {tensor} y) => ({tensor} z) {{ {body} }}"
    path = folder / "model.onnx"
    onnx.save(parser.parse_model(text), path)
    return path


def _inputs(count: int) -> dict[str, Array]:
    rng = np.random.default_rng(count)
    return {name: rng.standard_normal((count, 4), np.float32) for name in "xy"}


def _check(executable: byoc_mlir.Executable, path: Path, given: Mapping[str, Array]) -> None:
    assert_agrees(executable.run(given), run_onnxruntime(onnx.load(path), given))


def _compiled(path: Path, **options: Any) -> byoc_mlir.Executable:
    return byoc_mlir.compile(path, threads=1, cache=path.parent / "cache", **options)


def _printed(script: str) -> str:
    """Returns the output of a separate process, which must print no error.

    The process may import the package from another folder than the tests do, and so find other
    programs in the cache.
    """
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stderr == ""
    return done.stdout


def test_a_language_model_is_answered_at_once(tmp_path: Path) -> None:
    path = tmp_path / "decoder.onnx"
    onnx.save(decoder(bits=4), path)
    with _compiled(path) as executable:
        assert isinstance(executable.node, LoadedTier)


def test_another_process_compiles_what_is_answered_meanwhile(tmp_path: Path) -> None:
    path = _file(tmp_path)
    with _compiled(path) as executable:
        assert isinstance(executable.node, LoadedTier)
        for count in (3, 1, 0, 7):
            _check(executable, path, _inputs(count))
        executable.wait()
        assert executable.report().compile_seconds[0][0] == "cache"  # it was not compiled here
        for count in (7, 2, 0):
            _check(executable, path, _inputs(count))
        assert len(executable.report().variants) == 1
    with _compiled(path) as again:
        assert not isinstance(again.node, LoadedTier)
        _check(again, path, _inputs(4))
        assert again.report().compile_seconds[0][0] == "cache"


def test_no_compiler_is_imported_and_an_exit_waits_for_it(tmp_path: Path) -> None:
    path = _file(tmp_path)
    script = f"""
import sys
import numpy as np, byoc_mlir
given = dict.fromkeys("xy", np.ones((2, 4), np.float32))
with byoc_mlir.compile({str(path)!r}, threads=1, cache={str(tmp_path / "cache")!r}) as executable:
    print(executable.run(given)["z"].sum())
    print([name for name in ("xdsl", "llvmlite", "onnx.reference") if name in sys.modules])
    print(type(executable.node).__name__)
"""
    assert _printed(script) == "16.0\n[]\nLoadedTier\n"
    again = "    print(executable.report().compile_seconds[0][0])\n"
    assert _printed(script + again) == "16.0\n[]\nDynamicLeaf\ncache\n"


def test_sizes_that_come_with_values(tmp_path: Path) -> None:
    text = f"{_HEAD} g (float[3, 4] x) => (int64[2, found] z) {{ z = NonZero(x) }}"
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(text), path)
    given = {"x": np.eye(3, 4, dtype=np.float32)}
    with _compiled(path) as executable:
        assert isinstance(executable.node, LoadedTier)
        _check(executable, path, given)
        executable.wait()
        _check(executable, path, given)
        _check(executable, path, {"x": np.zeros((3, 4), np.float32)})


def test_what_fails_beside_is_compiled_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling_process, "_SCRIPT", "import sys; sys.exit(3)")
    path = _file(tmp_path)
    with _compiled(path) as executable:
        assert isinstance(executable.node, LoadedTier)
        for count in (3, 1):
            _check(executable, path, _inputs(count))
            time.sleep(0.5)  # it is gone by now
        assert "cache" not in dict(executable.report().compile_seconds)


def test_a_process_that_is_gone_is_no_error(tmp_path: Path) -> None:
    path = _file(tmp_path)
    script = f"""
import numpy as np, byoc_mlir
from byoc_mlir.compiler.execution import compiling_process
compiling_process._SCRIPT = "raise SystemExit(3)"
given = dict.fromkeys("xy", np.ones((200_000, 4), np.float32))
executable = byoc_mlir.compile({str(path)!r}, threads=1, cache={str(tmp_path / "cache")!r})
print(int(executable.run(given)["z"].sum()))
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "1600000\n"
    assert "Error" not in done.stderr  # there may be a warning, when it was gone before the run


def test_where_there_is_no_process_it_is_compiled_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refused)
    path = _file(tmp_path)
    with _compiled(path) as executable:
        assert not isinstance(executable.node, LoadedTier)
        _check(executable, path, _inputs(3))


@pytest.mark.parametrize(
    "options",
    [
        {"interpreter": False},
        {"targets": ()},
        {"prune": "off"},
        {"precision": "bf16"},
        {"disable": ("simplify",)},
        {"sizes": {"n": 3}},
        {"profile": True},
        {"limits": byoc_mlir.Limits(nodes=10)},
        {"fallback": "forbid"},
    ],
    ids=str,
)
def test_who_says_how_it_is_compiled_waits(tmp_path: Path, options: dict[str, Any]) -> None:
    with _compiled(_file(tmp_path), **options) as executable:
        assert not isinstance(executable.node, LoadedTier)


def test_what_another_process_has_not_registered_is_compiled_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "_registered_importers", lambda: ["an op of the user's"])
    with _compiled(_file(tmp_path)) as executable:
        assert not isinstance(executable.node, LoadedTier)


def test_the_environment_may_forbid_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYOC_INTERPRETER", "off")
    with _compiled(_file(tmp_path)) as executable:
        assert not isinstance(executable.node, LoadedTier)


@pytest.mark.parametrize(
    ("asked", "cores", "found"),
    [(None, 8, 7), (1, 8, 1), (8, 8, 7), (4, 8, 4), (2, 2, 1), (None, 1, 1), (16, 8, 7)],
)
def test_a_core_is_left_to_the_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: int | None, cores: int, found: int
) -> None:
    made: list[int] = []
    monkeypatch.setattr(at_once, "available_threads", lambda: cores)
    monkeypatch.setattr(InterpretedModel, "__init__", lambda *arguments: made.append(arguments[-1]))
    path = _file(tmp_path)
    byoc_mlir.compile(path, threads=asked, cache=tmp_path / "cache").close()
    assert made == [found]


def test_fixed_sizes_are_answered_meanwhile(tmp_path: Path) -> None:
    path = _file(tmp_path, size="3")
    with _compiled(path) as executable:
        assert isinstance(executable.node, LoadedTier)
        _check(executable, path, _inputs(3))
        executable.wait()
        assert executable.report().compile_seconds[0][0] == "cache"  # it was not compiled here
        _check(executable, path, _inputs(3))


def test_fixed_sizes_are_compiled_without_a_run(tmp_path: Path) -> None:
    path = _file(tmp_path, size="3")
    with _compiled(path) as executable:
        assert isinstance(executable.node, LoadedTier)
        assert executable.report().compile_seconds[0][0] == "cache"
        _check(executable, path, _inputs(3))


def test_a_model_of_fixed_sizes_that_is_only_compiled_fills_the_cache(tmp_path: Path) -> None:
    path = _file(tmp_path, size="3")
    _compiled(path).close()
    compiling_process._wait_for_all()
    with _compiled(path) as again:
        assert not isinstance(again.node, LoadedTier)
        assert again.report().compile_seconds[0][0] == "cache"


def test_ops_that_are_not_known_are_compiled_first(tmp_path: Path) -> None:
    with _compiled(_file(tmp_path, "s = Add(x, y) z = Celu(s)")) as one:
        assert not isinstance(one.node, LoadedTier)


def test_a_model_is_not_run_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x0a no model")
    with pytest.raises(InvalidModelError, match="ONNX model"):
        _compiled(path)


def test_sizes_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    path = _file(tmp_path)
    with _compiled(path) as executable:
        _check(executable, path, _inputs(3))
        with pytest.raises(InvalidInputError, match="n"):
            executable.run({"x": _inputs(3)["x"], "y": _inputs(2)["y"]})
        _check(executable, path, _inputs(2))


def test_the_command_runs_a_model_that_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BYOC_CACHE", "on")  # no other process compiles without it
    monkeypatch.setenv("BYOC_CACHE_DIR", str(tmp_path / "cache"))
    status = main(["run", str(_file(tmp_path, size="2")), "--threads", "1"])
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    assert "a run on 1 thread(s)" in printed.out
