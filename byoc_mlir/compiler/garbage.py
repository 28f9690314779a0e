"""The garbage collector during a compilation."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from contextlib import contextmanager

from byoc_mlir.locks import ForkSafeLock

_WORTH_COLLECTING = 1 << 26
"""Minimum bytes of weights for which a collection pays."""


@contextmanager
def collection_paused() -> Generator[None]:
    """Pauses garbage collection, and collects once at the end.

    A compilation creates many objects that live until its end; repeated collections would take an
    eighth of its time. The IR has reference cycles, so only a collection at the end frees it soon.
    This works only when no variable refers to the IR any more. So use it as a decorator of
    functions.
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
    """Pauses garbage collection, without a collection at the end.

    It is meant for imports, whose objects live as long as the process.
    """
    is_outermost = _pause()
    try:
        yield
    finally:
        if is_outermost:
            if not _finds_frozen:
                gc.freeze()
            _resume()


def collect_weights(held_bytes: int) -> None:
    """Collects garbage if `held_bytes`, the bytes of all weights in memory, is large.

    Call it when weights have been replaced by others. The modules that own the replaced weights
    have reference cycles. Without this function, they would stay in memory until the process's next
    full collection, in addition to the new weights.
    """
    if held_bytes > _WORTH_COLLECTING:
        gc.collect()


_lock = ForkSafeLock()
"""Lock of the flags below and of the collector."""

_is_paused = False
_finds_frozen = False
"""True once the process had frozen objects of its own. Counting them visits all of them, which
would take longer than a small compilation."""


def _pause() -> bool:
    """Pauses collection; returns True for the outermost pause.

    It freezes the existing objects, unless the process has frozen objects already. So a collection
    during the pause scans only the objects of the compilation, and not all modules.
    """
    global _is_paused, _finds_frozen
    with _lock:
        if not gc.isenabled():
            return False
        gc.disable()
        _finds_frozen = _finds_frozen or gc.get_freeze_count() > 0
        _is_paused = True
        if not _finds_frozen:
            gc.freeze()
        return True


def _resume() -> None:
    """Resumes collection, also in a forked child, which lacks the compiling thread."""
    global _is_paused
    with _lock:
        if not _is_paused:
            return
        if not _finds_frozen:
            gc.unfreeze()
        gc.enable()
        _is_paused = False


os.register_at_fork(after_in_child=_resume)
