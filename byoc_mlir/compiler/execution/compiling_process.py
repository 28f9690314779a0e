"""Compilation in a separate process, which writes the programs to the cache.

So the caller's process needs neither the compiler's memory nor its interpreter lock. The new
process runs `main`, which reads from standard input.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.cache.fingerprint import has_registered
from byoc_mlir.compiler.cache.folder import Cache
from byoc_mlir.compiler.execution.known import compile_here, known_model
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.errors import InputValuesNeededError
from byoc_mlir.installed import search_path
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.execution.dynamic_leaf import DynamicLeaf
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.program import Array
from byoc_mlir.runtime.system.memory import return_freed_memory
from byoc_mlir.runtime.system.threads import available_threads, starts
from byoc_mlir.warned import warn_user

_SCRIPT = """
import atexit, json, os, sys
sys.path[:] = json.loads(sys.stdin.buffer.readline())
from byoc_mlir.compiler.execution.compiling_process import main
status = main()
atexit._run_exitfuncs()
sys.stderr.flush()
os._exit(status)
"""
"""Python code of the process. It ends without the interpreter's finalisation, which frees all
objects one by one while the caller waits.
"""

_at_work: set[CompilingProcess] = set()
"""Processes that compile. An exit waits for them; otherwise the next process would compile
again.
"""

_at_work_lock = ForkSafeLock()

_EXIT_SECONDS = 20.0
"""Maximum seconds that an exit waits for all processes together, before it ends them."""

_END_SECONDS = 5.0
"""Seconds after which a killed process is gone, unless the system itself is stuck."""

_FAILURE_BYTES = 4096
"""Maximum bytes of a process's last error output to show."""


def new_process() -> subprocess.Popen[bytes] | None:
    """Starts a process for `CompilingProcess`, which imports modules until it gets a model.

    Returns `None` if there can be none, or if it would compile otherwise than this process.
    """
    if has_registered() or not can_start():
        return None
    try:
        process = _started()
    except OSError:
        return None
    _write(process, _line(search_path()))
    return process


def can_start() -> bool:
    """True if another compilation may run beside this process: a core is free for it, and Python is
    not embedded in a program.
    """
    if len(_working()) >= max(1, available_threads() - 1):
        return False
    executable = Path(sys.executable or "")
    is_python = executable.is_absolute() and executable.name.startswith("python")
    return is_python and not getattr(sys, "frozen", False)


class CompilingProcess:
    """Compiles a model; see `runtime.execution.tier.Compilation`.

    Args:
        cached: the model, and the cache to which its programs are written.
        process: the result of `new_process`.
    """

    def __init__(self, cached: CachedModel, process: subprocess.Popen[bytes]):
        self._cached = cached
        self._lock = ForkSafeLock()
        self._has_work = self._is_stopped = False
        self._owner = os.getpid()
        self._process = process
        weakref.finalize(self, end, process).atexit = False  # its input ends with this one
        _write(process, _line(_said(cached)))

    def start(self, inputs: Mapping[str, Array] | None = None) -> None:
        """Starts the compilation for inputs of the same shapes and types; the second call does
        nothing.

        Args:
            inputs: `None` if all shapes are fixed.
        """
        if self._has_work:
            return
        data = b"" if inputs is None else _file(inputs)
        with self._lock:
            if self._has_work:
                return
            self._has_work = True
        with _at_work_lock:
            _at_work.difference_update([one for one in _at_work if one.is_over()])
            _at_work.add(self)
        # a pipe holds little, and the process may not read it yet
        thread = threading.Thread(target=_write, args=(self._process, data, True), daemon=True)
        if not starts(thread):
            end(self._process)  # it would wait for its inputs

    def has_started(self) -> bool:
        """True if the process compiles, or has compiled."""
        return self._has_work

    def is_over(self) -> bool:
        """True if the process has ended, or was started before this process was forked."""
        return self._owner != os.getpid() or self._process.poll() is not None

    def result(self) -> LoadedNode:
        """Returns the model after the process has ended; compiles missing programs in this process.

        If the process failed, the function warns.

        Raises:
            ByocError: the model cannot be compiled.
        """
        return_freed_memory()
        found = known_model(self._cached)
        if found is None:
            return self._compiled_here()
        snapshot = self._cached.request.model
        if isinstance(snapshot, Snapshot):
            snapshot.release()
        return found.node

    def _compiled_here(self) -> LoadedNode:
        compiled = compile_here(self._cached.request, self._cached).node
        if self._process.returncode and not self._is_stopped:
            warn_user(
                f"the process that compiled '{self._cached.request.plain_file}' beside the calls"
                f" ended with status {self._process.returncode}, so the model was compiled in this"
                f" process{self._complaint()}; `compile(..., interpreter=False)` starts no other"
                " process",
            )
        return compiled

    def wait(self) -> None:
        """Waits until the process has ended, at most for the time limit of a compilation.

        A process without a compilation to do is ended.
        """
        self.stop()
        self.wait_until(time.monotonic() + self._cached.request.limits.seconds)

    def wait_until(self, deadline: float) -> None:
        """Waits until the process has ended; ends it after the deadline."""
        if self.is_over():
            return
        left = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
        try:
            self._process.wait(left)
        except subprocess.TimeoutExpired:
            end(self._process)

    def stop(self) -> None:
        """Ends the process if it has not begun to compile; a compilation continues, since the cache
        keeps its result.
        """
        with self._lock:
            if not self._has_work and not self.is_over():
                self._is_stopped = True
                end(self._process)

    def _complaint(self) -> str:
        """Returns the last line of the process's standard error."""
        pipe = self._process.stderr
        if pipe is None or pipe.closed:
            return ""
        said = (pipe.read() or b"")[-_FAILURE_BYTES:].decode(errors="replace").split("\n")
        last = next((line for line in reversed(said) if line.strip()), "")
        return f" ({last.strip()!r})" if last else ""


def main() -> int:
    """Compiles the model that standard input names, for the inputs that follow.

    Returns 0 if the cache then contains the program.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the caller's, who ends this process
    gc.disable()  # the process ends with what it makes
    said = json.loads(sys.stdin.buffer.readline())
    model = Snapshot.of_file(Path(said["model"]))
    request = Request(model, threads=said["threads"], fallback=said["fallback"], load=False)
    cached = CachedModel.of(Cache(Path(said["folder"]), said["limit"]), request)
    if cached is None or cached.key != said["key"]:
        sys.stderr.write("the model, or what it is compiled with, is another one there\n")
        return 1
    executable = compile_here(request, cached)
    data = sys.stdin.buffer.read()
    if data:  # else all shapes are fixed
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            _compile_for(executable, [stored[name] for name in stored.files])
    return 0


def _compile_for(executable: Executable, arrays: Sequence[Array]) -> None:
    """Compiles the programs for inputs; runs the model only if their shapes do not suffice."""
    node = executable.node
    if isinstance(node, DynamicLeaf):
        shapes = {info.name: array.shape for info, array in zip(node.inputs, arrays, strict=True)}
        with suppress(InputValuesNeededError):
            node.warmup(shapes)
            return
    executable.run(arrays)


def _said(cached: CachedModel) -> dict[str, str | int | None]:
    """Returns a request with default options (`Request.plain_file`) and the place of its programs,
    as JSON.
    """
    request, cache = cached.request, cached.cache
    asked = {"model": str(request.plain_file), "threads": request.threads}
    place = {"folder": str(cache.folder), "limit": cache.limit, "key": cached.key}
    return {**asked, "fallback": request.fallback, **place}


def _line(document: object) -> bytes:
    return json.dumps(document).encode() + b"\n"


def _file(inputs: Mapping[str, Array]) -> bytes:
    """Encodes arrays in their order, without names, as NumPy's `.npz`."""
    file = io.BytesIO()
    np.savez(file, *inputs.values())  # NumPy before 2.1 takes any keyword for an array
    return file.getvalue()


def _started() -> subprocess.Popen[bytes]:
    """Starts a process that imports nothing from the current folder, which others may control."""
    flags = sys.flags
    asked = {"-E": flags.ignore_environment, "-s": flags.no_user_site, "-S": flags.no_site}
    options = [option for option, is_asked in asked.items() if is_asked]
    # what is relative there is relative to a folder that this process may have left
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    complaints, errors = os.pipe()
    os.set_blocking(complaints, False)
    os.set_blocking(errors, False)  # nobody may read it for long
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", *options, "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
        )
    except OSError:
        os.close(complaints)
        raise
    finally:
        os.close(errors)
    process.stderr = os.fdopen(complaints, "rb")
    return process


def _write(process: subprocess.Popen[bytes], data: bytes, is_last: bool = False) -> None:
    pipe = process.stdin
    assert pipe is not None
    if pipe.closed:
        return
    try:
        pipe.write(data)
        pipe.flush()
    except (OSError, ValueError):  # it has ended, which `is_over` says, or was ended here
        is_last = True
    if is_last:
        with suppress(OSError):  # what could not be written is still in the buffer
            pipe.close()


def _working() -> list[CompilingProcess]:
    """Returns the processes that compile now."""
    with _at_work_lock:
        return [one for one in _at_work if not one.is_over()]


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process, and closes its pipes."""
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)
    for pipe in (process.stdin, process.stderr):
        if pipe is not None:
            with suppress(OSError):  # what could not be written is still in the buffer
                pipe.close()


@atexit.register
def _wait_for_all() -> None:
    deadline = time.monotonic() + _EXIT_SECONDS
    ours = _working()
    try:
        for one in ours:
            one.wait_until(deadline)
    finally:  # also when the user does not wait
        for one in ours:
            one.wait_until(0.0)
