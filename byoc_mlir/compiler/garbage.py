"""The garbage collector while compiling."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from contextlib import contextmanager

from byoc_mlir.runtime.system.forks import ForkSafeLock

_WORTH_COLLECTING = 1 << 26
"""Bytes of weights."""


@contextmanager
def collection_paused() -> Generator[None]:
    """Nothing is collected inside, and what was made there is looked through at the end, once.

    A compilation makes many objects that live until its end: looking through them again and again
    for garbage took an eighth of its time. The IR refers to itself; to be collected at the end,
    and not with the process' next full collection, it must not be in a variable any more. So this
    decorates functions.
    """
    is_outermost = _pause()
    try:
        yield
    finally:
        if is_outermost:
            gc.collect()
            _resume()


@contextmanager
def modules_imported() -> Generator[None]:
    """As `collection_paused`, for what stays as long as the process: not looked through at all."""
    is_outermost = _pause()
    try:
        yield
    finally:
        if is_outermost:
            if _is_frozen:
                gc.freeze()
            _resume()


def collect_weights(held_bytes: int) -> None:
    """Lets go of weights that others have replaced, where the weights are large.

    What held them refers to itself; left alone it would stay until the process' next full
    collection, and new weights would come on top.
    """
    if held_bytes > _WORTH_COLLECTING:
        gc.collect()


_lock = ForkSafeLock()
"""Held while the two below change, and the collector with them."""

_is_paused = False
_is_frozen = False


def _pause() -> bool:
    """Whether this is the outermost pause.

    What there is now is frozen, unless the process keeps frozen objects of its own: a collection
    inside looks through what the compilation has made, and not through all modules.
    """
    global _is_paused, _is_frozen
    with _lock:
        if not gc.isenabled():
            return False
        gc.disable()
        _is_paused, _is_frozen = True, gc.get_freeze_count() == 0
        if _is_frozen:
            gc.freeze()
        return True


def _resume() -> None:
    """Also in a forked child, where the thread that compiles is missing."""
    global _is_paused, _is_frozen
    with _lock:
        if not _is_paused:
            return
        if _is_frozen:
            gc.unfreeze()
        gc.enable()
        _is_paused = _is_frozen = False


os.register_at_fork(after_in_child=_resume)
