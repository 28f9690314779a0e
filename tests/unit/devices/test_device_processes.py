"""Devices with several threads, after a fork, where they are missing or have changed."""

from __future__ import annotations

import threading

import numpy as np
from device_models import FIRST, compiled, nothing_left, two_hosts_between
from fakenpu.control import Control

from byoc_mlir.testing.forked import run_forked
from byoc_mlir.testing.reference import random_inputs


def test_threads_share_an_executable() -> None:
    model, failures = two_hosts_between(), []
    control = Control("fakenpu")
    with nothing_left(), compiled(model, *FIRST) as executable:
        inputs = [random_inputs(model, seed=seed) for seed in range(8)]
        wanted = [executable.run(each)["out"].copy() for each in inputs]

        def work(number: int) -> None:
            for _ in range(10):
                found = executable.run(inputs[number])["out"]
                if not np.array_equal(found, wanted[number]):
                    failures.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        with control.delays(copy=1):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert 1 <= control.counters().live_queues <= 8
    assert not failures


FORK = """
import os
import byoc_mlir
from byoc_mlir.errors import DeviceError
from byoc_mlir.testing.networks import mlp3
from byoc_mlir.testing.reference import random_inputs
model = mlp3()
inputs = random_inputs(model)
executable = byoc_mlir.compile(model, targets=("fakenpu",))
executable.run(inputs)
child = os.fork()
if child == 0:
    try:
        executable.run(inputs)
    except DeviceError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
executable.run(inputs)
"""


def test_a_forked_process_is_refused() -> None:
    assert "a device cannot be used in a forked process" in run_forked(FORK)
