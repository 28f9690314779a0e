"""Threads: many compile and run at the same time; idle ones take no time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from process_models import elementwise, inputs

import byoc_mlir
from byoc_mlir.testing.forked import run_forked

COMPILE_IN_THREADS = """
import sys, threading
sys.setswitchinterval(1e-4)
import byoc_mlir
from process_models import elementwise

model, failures = elementwise(), []

def work(barrier, targets):
    barrier.wait()
    try:
        byoc_mlir.compile(model, targets, threads=1, cache=sys.argv[1] or None).close()
    except Exception as error:
        failures.append(error)

for attempt in range(int(sys.argv[2])):
    arguments = (threading.Barrier(6), () if attempt % 5 else ("dnnl",))  # the host takes less time
    threads = [threading.Thread(target=work, args=arguments, daemon=True) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
assert not failures, failures
"""

DIFFERENT_MODELS = """
import threading
import numpy as np
import byoc_mlir
from process_models import convolution, elementwise, inputs

models = [convolution(6), convolution(9), elementwise(3), elementwise(4)]
executables = {}

def compiled(number):
    return byoc_mlir.compile(models[number], ("dnnl",), threads=1, fallback="allow")

def work(number):
    executables[number] = compiled(number)

threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(models))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
for number, model in enumerate(models):
    feeds = inputs(model)
    alone = compiled(number)
    np.testing.assert_allclose(
        executables[number].run(feeds)["y"], alone.run(feeds)["y"], rtol=1e-4, atol=1e-5
    )
"""

RUN_IN_THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import byoc_mlir
from process_models import convolution, inputs

model = convolution(8)
targets = tuple(filter(None, [sys.argv[1]]))
executable = byoc_mlir.compile(model, targets=targets, threads=2, fallback="allow")
feeds = [inputs(model, seed) for seed in range(8)]
expected = [executable.run(one)["y"] for one in feeds]

def agrees(number):
    runs = (executable.run(feeds[number])["y"] for _ in range(int(sys.argv[2])))
    return all(np.array_equal(one, expected[number]) for one in runs)

with ThreadPoolExecutor(8) as pool:
    assert all(pool.map(agrees, range(8)))
"""


def test_compiling_in_six_threads() -> None:
    run_forked(COMPILE_IN_THREADS, "", "15", seconds=240)


def test_compiling_in_six_threads_with_a_cache(tmp_path: Path) -> None:
    run_forked(COMPILE_IN_THREADS, str(tmp_path), "3", seconds=120)


def test_compiling_different_models_in_threads() -> None:
    run_forked(DIFFERENT_MODELS, seconds=120)


@pytest.mark.parametrize("target", ["", "dnnl"], ids=["host", "dnnl"])
def test_eight_threads_run_one_executable(target: str) -> None:
    run_forked(RUN_IN_THREADS, target, "1000", seconds=180)


def test_idle_threads_do_not_spin() -> None:
    model = elementwise(1 << 20)
    executable = byoc_mlir.compile(model, targets=(), threads=2)
    executable.run(inputs(model))
    time.sleep(0.1)  # its threads may look for more work for a moment
    before = os.times()
    time.sleep(0.5)
    after = os.times()
    assert after.user + after.system - before.user - before.system < 0.25
