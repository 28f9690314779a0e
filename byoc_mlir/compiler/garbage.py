"""The garbage collector while compiling."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from contextlib import contextmanager

_WORTH_COLLECTING = 1 << 26
"""Bytes of weights; looking for garbage takes 50 ms."""


@contextmanager
def collection_paused() -> Generator[None]:
    """Nothing is collected inside, and what was made there is looked through at the end, once.

    A compilation makes many objects that live until its end: looking through them again and again
    for garbage took an eighth of its time. The IR refers to itself; to be collected at the end,
    and not with the process' next full collection, it must not be in a variable any more. So this
    decorates functions.
    """
    global _is_paused
    was_enabled = gc.isenabled()
    _is_paused = _is_paused or was_enabled
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _resume()
            gc.collect(1)


_is_paused = False


def _resume() -> None:
    """Also in a forked child, where the thread that compiles is missing."""
    global _is_paused
    if _is_paused:
        gc.enable()
        _is_paused = False


os.register_at_fork(after_in_child=_resume)


def collect_weights(held_bytes: int) -> None:
    """Lets go of weights that others have replaced, where the weights are large.

    What held them refers to itself; left alone it would stay until the process' next full
    collection, and new weights would come on top.
    """
    if held_bytes > _WORTH_COLLECTING:
        gc.collect()
