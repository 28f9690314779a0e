"""State that the threads of a process share: each sees it complete, or waits."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import byoc_mlir
from byoc_mlir.backends import c_compiler
from byoc_mlir.backends.base import CSource
from byoc_mlir.compiler.garbage import collection_paused
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.onednn import engine
from byoc_mlir.warned import noted_warnings, warn


@pytest.fixture(autouse=True)
def _switch_often(monkeypatch: pytest.MonkeyPatch) -> Any:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _together(count: int, work: Callable[[int], object]) -> list[Any]:
    """Returns the results of threads that start at the same moment; a failure is raised."""
    begin = threading.Barrier(count)
    found: list[Any] = [None] * count
    errors: list[BaseException] = []

    def run(number: int) -> None:
        begin.wait()
        try:
            found[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found


def test_the_collector_is_as_it_was() -> None:
    """Checks the garbage collector, since objects that stay frozen would never be collected."""
    assert gc.isenabled()

    def paused(_: int) -> None:
        for _ in range(50):
            with collection_paused():
                pass

    _together(8, paused)
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


@pytest.mark.skipif(c_compiler.no_c_compiler() is not None, reason="needs a C compiler")
def test_threads_compile_the_same_c_source() -> None:
    source = CSource(f"int R(void) {{ return {os.getpid()}; }}")
    libraries = _together(4, lambda _: c_compiler.compile_c(source, "R"))
    assert len({*libraries}) == 1
    assert [file.suffix for file in libraries[0].parent.iterdir() if file.is_dir()] == []


@pytest.mark.skipif(c_compiler.no_c_compiler() is not None, reason="needs a C compiler")
def test_a_forked_child_leaves_what_was_compiled() -> None:
    library = c_compiler.compile_c(CSource("int R(void) { return 1; }"), "R")
    child = os.fork()
    if child == 0:
        own = c_compiler.compile_c(CSource("int R(void) { return 1; }"), "R")
        c_compiler._remove(library.parent, int(own == library))  # pyright: ignore
        os._exit(int(own == library))
    assert os.waitpid(child, 0)[1] == 0
    assert library.exists()


def test_libraries_are_not_looked_for_in_the_current_folder() -> None:
    assert c_compiler._linked(Path("libx.so.1")) == ("-l:libx.so.1",)  # pyright: ignore
    _, rpath = c_compiler._linked(Path("lib/libx.so.1"))  # pyright: ignore
    assert rpath == f"-Wl,-rpath,{Path('lib').absolute()}"


def test_warnings_are_noted_by_the_thread_that_compiles() -> None:
    def work(number: int) -> list[str]:
        with noted_warnings() as noted:
            for _ in range(20):
                warn(f"of {number}")
        return noted

    shown = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert _together(6, work) == [[f"of {number}"] * 20 for number in range(6)]
    assert warnings.showwarning is shown


def test_a_process_has_one_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that there is one engine, since primitives of one do not run on the stream of
    another."""

    def made() -> object:
        time.sleep(0.01)
        return object()

    monkeypatch.setattr(engine, "_only", cache(made))
    assert len({*_together(8, lambda _: engine.engine.__wrapped__())}) == 1


def test_a_lock_may_be_taken_again_by_what_the_collector_ends() -> None:
    lock = ForkSafeLock()
    with lock, lock:
        pass


def test_threads_compile_load_and_run_at_once(tmp_path: Path) -> None:
    path, file = tmp_path / "model.onnx", tmp_path / "model.so"
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[4] x) => (float[4] y) {y = Exp(x)}'
    onnx.save(parser.parse_model(text), path)
    x = np.linspace(0, 1, 4, dtype=np.float32)
    with byoc_mlir.compile(path, targets=()) as executable:
        executable.export_library(file)

    def work(number: int) -> None:
        for _ in range(3):
            is_loaded = number % 2
            made = byoc_mlir.load(file) if is_loaded else byoc_mlir.compile(path, targets=())
            with made:
                np.testing.assert_allclose(made.run({"x": x})["y"], np.exp(x), rtol=1e-6)

    _together(6, work)
