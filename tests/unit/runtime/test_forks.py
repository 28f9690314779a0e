"""Forked children: they run models, whatever the parent's threads did before or do meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from byoc_mlir.testing.forked import run_forked

SETUP = """
import faulthandler, os, signal, sys, threading, time
import numpy as np
import byoc_mlir
from process_models import convolution, elementwise, inputs

def in_child(work):
    child = os.fork()
    if child == 0:
        faulthandler.register(signal.SIGALRM, chain=True)
        signal.alarm(60)
        try:
            os._exit(0 if work() else 3)
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            os._exit(4)
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"the child ended with status {status}"

model = convolution()
feeds = inputs(model)
executable = byoc_mlir.compile(model, threads=2, fallback="allow", prune="off", targets=TARGETS)
expected = executable.run(feeds)["y"]

def agrees(one=executable):
    return all(np.array_equal(one.run(feeds)["y"], expected) for _ in range(3))
"""

AFTER_RUNS = """
in_child(agrees)
in_child(lambda: in_child(agrees) or True)
assert agrees()
"""

FROM_A_WORKER = """
def work():
    assert agrees()
    in_child(agrees)

threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
in_child(agrees)
"""

WHILE_RUNNING = """
stop = threading.Event()
def work():
    while not stop.is_set():
        executable.run(feeds)

threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
[thread.start() for thread in threads]
for _ in range(10):
    in_child(agrees)
stop.set()
[thread.join() for thread in threads]
"""

WHILE_COMPILING = """
started = threading.Event()
def work():
    started.set()
    byoc_mlir.compile(model, threads=2, targets=TARGETS)
    symbolic.warmup({"x": (7,)})

symbolic = byoc_mlir.compile(elementwise("n"), targets=(), threads=2)
thread = threading.Thread(target=work)
thread.start()
started.wait()
x = np.ones(5, np.float32)
for _ in range(4):
    time.sleep(0.05)
    in_child(lambda: agrees() and np.allclose(symbolic.run({"x": x})["y"], np.exp(x)))
thread.join()
"""

WITHOUT_PAUSING = """
from byoc_mlir.runtime.system import forks
forks._end_openmp_threads = lambda: False  # as with libgomp before GCC 9

def compiled_anew():
    return agrees(byoc_mlir.compile(model, threads=2, targets=TARGETS))

in_child(agrees)
in_child(compiled_anew)
assert agrees()
"""

TARGETS = {"host": "()", "dnnl": "('dnnl',)"}


@pytest.mark.parametrize("target", TARGETS)
def test_children_run(target: str) -> None:
    parts = (SETUP, AFTER_RUNS, FROM_A_WORKER, WHILE_RUNNING, WHILE_COMPILING, WITHOUT_PAUSING)
    run_forked("".join((f"TARGETS = {TARGETS[target]}\n", *parts)), seconds=180)


IMPORTING = """
import os, pathlib, signal, sys, threading, time
import byoc_mlir
from byoc_mlir.runtime.system import forks

byoc_mlir.__path__.append(sys.argv[1])
pathlib.Path(sys.argv[1], "slow_module.py").write_text("import time; time.sleep(0.5)")

def work():
    import byoc_mlir.slow_module

thread = threading.Thread(target=work)
thread.start()
while "byoc_mlir.slow_module" not in sys.modules:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    signal.alarm(20)
    work()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
thread.join()
"""


def test_a_child_imports_what_another_thread_imported_at_the_fork(tmp_path: Path) -> None:
    run_forked(IMPORTING, str(tmp_path))


COMPUTING = """
import os, signal, sys, threading
from byoc_mlir.locks import ForkSafeLock, cached_property

class Guarded:
    lock = ForkSafeLock()

    @cached_property
    def value(self):
        with self.lock:
            if threading.current_thread() is other:
                reached.set()
                goes_on.wait()
            return 1

reached, goes_on = threading.Event(), threading.Event()
other = threading.Thread(target=lambda: Guarded().value)
other.start()
reached.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(Guarded().value - 1)
goes_on.set()
assert os.waitpid(child, 0)[1] == 0
other.join()
"""


def test_a_child_computes_the_property_that_another_thread_computed_at_the_fork() -> None:
    run_forked(COMPUTING)


COUNTING = """
import os
import byoc_mlir.runtime.system.forks
from byoc_mlir.runtime.system.threads import RUNS

RUNS[:] = 1
child = os.fork()
if child == 0:
    os._exit(int(RUNS.any()))
assert os.waitpid(child, 0)[1] == 0
assert RUNS.tolist() == [1, 1]
"""


def test_a_child_does_not_count_the_runs_of_its_parent() -> None:
    run_forked(COUNTING)
