"""The garbage collector while compiling."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Generator[None]:
    """Nothing is collected inside.

    A compilation makes many objects that live until its end: looking through them again and again
    for garbage took an eighth of its time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
