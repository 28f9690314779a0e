"""Threads and signals of runs in the interpreter tier."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from single_nodes import node_model

from byoc_mlir.interpreter.model import InterpretedModel
from byoc_mlir.interpreter.ops import OPS
from byoc_mlir.onednn.library import load_library
from byoc_mlir.runtime.system.signals import HELD

RunModel = Callable[[int, Callable[[], object]], None]


@pytest.fixture
def run_model(monkeypatch: pytest.MonkeyPatch) -> RunModel:
    """Runs a model, whose one op calls a function, on a number of threads."""

    def run(count: int, inside: Callable[[], object]) -> None:
        def call(x: Any) -> Any:
            inside()
            return x

        monkeypatch.setitem(cast(dict[str, Callable[..., Any]], OPS), "Relu", call)
        x = np.ones(3, np.float32)
        InterpretedModel(node_model("Relu", (x,), 21), {}, count).run({"x0": x})

    return run


def _blocked() -> set[int]:
    return {int(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, ())}


def _threads() -> int:
    return load_library().handle.omp_get_max_threads()


@pytest.mark.parametrize("count", [1, 2])
def test_threads_and_signals_are_as_before(run_model: RunModel, count: int) -> None:
    before, seen = (_threads(), _blocked()), list[Any]()
    run_model(count, lambda: seen.extend((_threads(), _blocked())))
    assert seen == [count, before[1] | {*HELD} - {signal.SIGKILL, signal.SIGSTOP}]
    assert (_threads(), _blocked()) == before


def test_after_an_exception_too(run_model: RunModel) -> None:
    def fail() -> None:
        raise KeyError

    before = _threads(), _blocked()
    with pytest.raises(KeyError):
        run_model(_threads() + 1, fail)
    assert (_threads(), _blocked()) == before


def test_what_was_held_before_stays(run_model: RunModel) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR2,))
    try:
        run_model(2, lambda: None)
        assert signal.SIGUSR2 in _blocked()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize("count", [1, 2])
def test_a_signal_waits_for_the_end(run_model: RunModel, count: int) -> None:
    arrived: list[int] = []

    def signal_myself() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        os.getpid()  # Python looks for signals between calls
        assert not arrived

    before = signal.signal(signal.SIGUSR1, lambda number, frame: arrived.append(number))
    try:
        run_model(count, signal_myself)
        assert arrived == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)
