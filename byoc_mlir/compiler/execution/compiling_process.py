"""A compilation in a process of its own, which leaves what it makes in the cache.

The caller's process imports no compiler, holds none of its memory, and shares no interpreter lock
with it. What is run as that process is `main`; it reads from its standard input.
"""

from __future__ import annotations

import atexit
import io
import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from byoc_mlir.compiler.cache.cached_executable import cached_executable
from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.cache.folder import Cache
from byoc_mlir.compiler.execution.here import compile_here
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.program import Array
from byoc_mlir.runtime.system.forks import ForkSafeLock
from byoc_mlir.runtime.system.memory import return_freed_memory
from byoc_mlir.runtime.system.threads import starts

_SCRIPT = """
import json, sys
sys.path[:] = json.loads(sys.stdin.buffer.readline())
from byoc_mlir.compiler.execution.compiling_process import main
sys.exit(main())
"""

_at_work: set[CompilingProcess] = set()
"""An exit waits for them: what is half compiled would be compiled again by the next process."""


def can_start() -> bool:
    """Whether this process can start another Python: not where it is built into a program."""
    is_python = Path(sys.executable or "").name.startswith("python")
    return is_python and not getattr(sys, "frozen", False)


class CompilingProcess:
    """Compiles a model; see `runtime.executables.tiered.Compilation`.

    Args:
        cached: the model, and the cache that it is put into.

    Raises:
        OSError: no process can be started.
    """

    def __init__(self, cached: CachedModel):
        self._cached = cached
        self._lock = ForkSafeLock()
        self._has_work = False
        self._process = _started()
        weakref.finalize(self, _end, self._process).atexit = False  # its input ends with this one
        self._write(_line([str(folder) for folder in sys.path]) + _line(_said(cached)))

    def start(self, inputs: Mapping[str, Array]) -> None:
        """Has the model compiled for inputs like these; the second call does nothing."""
        with self._lock:
            if self._has_work:
                return
            self._has_work = True
        _at_work.difference_update([one for one in _at_work if one.is_over()])
        _at_work.add(self)
        data = _file(inputs)
        # a pipe holds little, and the process may not read it yet
        thread = threading.Thread(target=self._write, args=(data, True), daemon=True)
        if not starts(thread):
            self._write(data, is_last=True)

    def is_over(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def result(self) -> Executable:
        """The executable, when the process has ended; what it did not leave is compiled here.

        Raises:
            ByocError: the model cannot be compiled.
        """
        return_freed_memory()
        found = cached_executable(self._cached)
        if found is None:
            return compile_here(self._cached.request, self._cached)
        snapshot = self._cached.request.model
        if isinstance(snapshot, Snapshot):
            snapshot.release()
        return found

    def wait(self) -> None:
        """Waits until the process has ended; one that has nothing to compile is ended."""
        self.stop()
        self._process.wait()

    def stop(self) -> None:
        """Ends the process, unless it compiles: then it goes on, for those who come later."""
        with self._lock:
            if not self._has_work:
                _end(self._process)

    def _write(self, data: bytes, is_last: bool = False) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        if pipe.closed:
            return
        try:
            pipe.write(data)
            pipe.flush()
        except OSError:  # the process ended, which `is_over` says
            is_last = True
        if is_last:
            with suppress(OSError):  # what could not be written is still in the buffer
                pipe.close()


def main() -> int:
    """Compiles what standard input names, and runs it on the inputs that follow; 0 when that is in
    the cache.
    """
    said = json.loads(sys.stdin.buffer.readline())
    model = Snapshot.of_file(Path(said["model"]))
    request = Request(model, threads=said["threads"], fallback=said["fallback"])
    cached = CachedModel.of(Cache(Path(said["folder"]), said["limit"]), request)
    if cached is None or cached.key != said["key"]:
        return 1  # the process that asks compiles something else, or the file was changed
    executable = compile_here(request, cached)
    data = sys.stdin.buffer.read()
    if data:  # else nobody has asked for an answer
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            executable.run([stored[name] for name in stored.files])
    return 0


def _said(cached: CachedModel) -> dict[str, str | int | None]:
    """A plain request (`Request.plain_file`), and where its programs go."""
    request, cache = cached.request, cached.cache
    asked = {"model": str(request.plain_file), "threads": request.threads}
    place = {"folder": str(cache.folder), "limit": cache.limit, "key": cached.key}
    return {**asked, "fallback": request.fallback, **place}


def _line(document: object) -> bytes:
    return json.dumps(document).encode() + b"\n"


def _file(inputs: Mapping[str, Array]) -> bytes:
    """Arrays in their order, without names, as NumPy's `.npz`."""
    file = io.BytesIO()
    np.savez(file, *inputs.values(), allow_pickle=False)
    return file.getvalue()


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@atexit.register
def _wait_for_all() -> None:
    for one in tuple(_at_work):
        one.wait()
