"""The threads and signals of runs at once."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from byoc_mlir.backends.onednn import load_library
from byoc_mlir.eager.onednn import use_threads
from byoc_mlir.runtime.system.signals import HELD


def _blocked() -> set[int]:
    return {int(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, ())}


def _threads() -> int:
    return load_library().handle.omp_get_max_threads()


@pytest.mark.parametrize("count", [1, 2])
def test_threads_and_signals_are_as_before(count: int) -> None:
    before = _threads(), _blocked()
    with use_threads(count):
        assert _threads() == count
        assert _blocked() == before[1] | {*HELD} - {signal.SIGKILL, signal.SIGSTOP}
    assert (_threads(), _blocked()) == before


def test_after_an_exception_too() -> None:
    before = _threads(), _blocked()
    with pytest.raises(KeyError), use_threads(_threads() + 1):
        raise KeyError
    assert (_threads(), _blocked()) == before


def test_what_was_held_before_stays() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR2,))
    try:
        with use_threads(2):
            pass
        assert signal.SIGUSR2 in _blocked()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize("count", [1, 2])
def test_a_signal_waits_for_the_end(count: int) -> None:
    arrived: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: arrived.append(number))
    try:
        with use_threads(count):
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
            os.getpid()  # Python looks for signals between calls
            assert not arrived
        assert arrived == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)
