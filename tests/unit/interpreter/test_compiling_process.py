"""Process that compiles in the background: its start, failures, and end."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import byoc_mlir
from byoc_mlir import installed
from byoc_mlir.compiler.cache import fingerprint
from byoc_mlir.compiler.execution import compiling_process
from byoc_mlir.runtime.execution.tier import LoadedTier

_X = {"x": np.ones(3, np.float32)}


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Enables tiered execution; hides registrations of other tests, which would prevent background
    compilation; leaves no compilation to the next test.
    """
    monkeypatch.setenv("BYOC_INTERPRETER", "on")
    for kind in ("classes", "importers"):
        monkeypatch.setattr(fingerprint, f"_registered_{kind}", list)
    yield
    compiling_process._wait_for_all()


def _file(folder: Path) -> Path:
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[n] x) => (float[n] y) {y = Relu(x)}'
    path = folder / "model.onnx"
    onnx.save(parser.parse_model(text), path)
    return path


def _compiled(folder: Path) -> byoc_mlir.Executable:
    executable = byoc_mlir.compile(_file(folder), threads=1, cache=folder / "cache")
    assert isinstance(executable.node, LoadedTier)
    return executable


def _run_and_wait(executable: byoc_mlir.Executable) -> None:
    np.testing.assert_array_equal(executable.run(_X)["y"], _X["x"])
    executable.wait()


def _idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mocks processes that do nothing, and the number of them that fit."""

    def started() -> subprocess.Popen[bytes]:
        return subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    monkeypatch.setattr(compiling_process, "_started", started)


@pytest.mark.parametrize("start", ["file", "command", "archive"])
def test_nothing_is_imported_from_the_current_folder(tmp_path: Path, start: str) -> None:
    folder, elsewhere = tmp_path / "models", tmp_path / "app"
    folder.mkdir()
    elsewhere.mkdir()
    _file(folder)
    for name in ("json", "encodings", "sitecustomize", "xdsl"):
        (folder / f"{name}.py").write_text(f"open('{tmp_path}/imported', 'a').write('{name}')")
    offered = folder / "offered-1.dist-info"
    offered.mkdir()
    (offered / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1\n")
    (offered / "entry_points.txt").write_text("[byoc_mlir.backends]\ndnnl = xdsl:Backend\n")
    script = f"""
import os, sys
import numpy as np, byoc_mlir
from byoc_mlir.backends import backend_names
from byoc_mlir.installed import installed_points
os.chdir({str(folder)!r})
executable = byoc_mlir.compile("model.onnx", cache={str(tmp_path / "cache")!r})
assert executable.run({{"x": np.ones(3, np.float32)}})["y"].sum() == 3
assert executable.node._compilation._process.wait() == 0, executable.node._compilation._complaint()
assert all(point.value != "xdsl:Backend" for point in installed_points("byoc_mlir.backends"))
"""
    if start == "archive":  # as zipapps are
        package = Path(byoc_mlir.__file__).parent
        archive = shutil.make_archive(str(tmp_path / "app"), "zip", package.parent, package.name)
        script = f"import sys; sys.path.insert(0, {archive!r}); {script.lstrip()}"
    (elsewhere / "app.py").write_text(script)
    arguments = ["-c", script] if start == "command" else [str(elsewhere / "app.py")]
    inherited = os.environ.get("PYTHONPATH", "")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([inherited, "."])}
    subprocess.run([sys.executable, *arguments], cwd=elsewhere, env=environment, check=True)
    assert not (tmp_path / "imported").exists()


def test_the_search_path_keeps_this_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = str(Path(byoc_mlir.__file__).parents[1])
    monkeypatch.setattr(sys, "path", ["", "/archive.pyz", "lib", "/packages"])
    assert installed.search_path() == ["/archive.pyz", "/packages", home]
    monkeypatch.chdir(home)
    assert installed.search_path() == [home, "/archive.pyz", "/packages"]


def test_threads_that_answer_first_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _idle(monkeypatch)
    at_work: set[compiling_process.CompilingProcess] = set()
    monkeypatch.setattr(compiling_process, "_at_work", at_work)
    executables = [_compiled(tmp_path) for _ in range(40)]
    errors: list[Exception] = []
    together = threading.Barrier(len(executables))

    def run(executable: byoc_mlir.Executable) -> None:
        together.wait()
        try:
            executable.run(_X)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in executables]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for executable in executables:
        executable.close()
    for one in tuple(at_work):
        one.wait()


@pytest.mark.parametrize(("cores", "most"), [(1, 1), (2, 1), (4, 3)])
def test_compilations_beside_leave_a_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, most: int
) -> None:
    monkeypatch.setattr(compiling_process, "_SCRIPT", "import time; time.sleep(600)")
    monkeypatch.setattr(compiling_process, "available_threads", lambda: cores)
    compilations: list[Any] = []
    for _ in range(most):
        assert compiling_process.can_start()
        executable = _compiled(tmp_path)
        executable.run(_X)
        compilations.append(executable.node._compilation)  # pyright: ignore
    assert not compiling_process.can_start()
    compilations[0].wait_until(0.0)
    assert compiling_process.can_start()
    for one in compilations:
        one.wait_until(0.0)


def test_an_exit_does_not_wait_for_a_process_that_is_stuck(tmp_path: Path) -> None:
    script = f"""
import os, signal
import numpy as np, byoc_mlir
from byoc_mlir.compiler.execution import compiling_process
compiling_process._EXIT_SECONDS = 0.2
os.environ["BYOC_INTERPRETER"] = "on"
executable = byoc_mlir.compile({str(_file(tmp_path))!r}, cache={str(tmp_path / "cache")!r})
process = executable.node._compilation._process
os.kill(process.pid, signal.SIGSTOP)
executable.run({{"x": np.ones(100_000, np.float32)}})  # more than a pipe holds
print(process.pid)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=200, check=True
    )
    assert done.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
    assert list((tmp_path / "cache").glob("*.tmp*")) == []


def test_who_waits_for_a_process_that_is_stuck_ends_it(tmp_path: Path) -> None:
    executable = _compiled(tmp_path)
    compilation: Any = executable.node._compilation  # pyright: ignore
    os.kill(compilation._process.pid, signal.SIGSTOP)
    executable.run(_X)
    compilation.wait_until(time.monotonic() + 0.1)
    with pytest.warns(UserWarning, match="status -9"):
        executable.report()
    np.testing.assert_array_equal(executable.run(_X)["y"], _X["x"])


def test_a_process_that_fails_is_complained_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import os; os.write(2, b'no room' * 100_000); exit(3)"  # more than a pipe holds
    monkeypatch.setattr(compiling_process, "_SCRIPT", script)
    executable = _compiled(tmp_path)
    with pytest.warns(
        UserWarning, match=r"model\.onnx' beside the calls ended .*no room.*interpreter"
    ):
        _run_and_wait(executable)  # it may be over before the run
    np.testing.assert_array_equal(executable.run(_X)["y"], _X["x"])


def test_what_was_not_asked_for_is_not_complained_of(tmp_path: Path) -> None:
    with warnings.catch_warnings(), _compiled(tmp_path) as executable:
        warnings.simplefilter("error")
        executable.warmup({"x": (3,)})  # compiled here


def test_a_forked_child_leaves_the_process_alone(tmp_path: Path) -> None:
    executable = _compiled(tmp_path)
    child = os.fork()
    if child == 0:
        same = np.array_equal(executable.run(_X)["y"], _X["x"])
        executable.close()
        os._exit(int(not same))
    assert os.waitpid(child, 0)[1] == 0
    assert not executable.node._compilation.is_over()  # pyright: ignore
    executable.close()


def test_inputs_are_sent_as_older_versions_of_numpy_read_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    savez = np.savez

    def savez_before_2_1(file: io.BytesIO, *arrays: object, **named: object) -> None:
        savez(file, *arrays, **{f"{name}_": value for name, value in named.items()})  # pyright: ignore

    monkeypatch.setattr(np, "savez", savez_before_2_1)
    sent = np.load(io.BytesIO(compiling_process._file(_X)))  # pyright: ignore
    assert [sent[name].tolist() for name in sent.files] == [[1, 1, 1]]
