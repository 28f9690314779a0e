"""The garbage collector while compiling."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

_WORTH_COLLECTING = 1 << 26
"""Bytes of weights; looking for garbage takes 50 ms."""


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


def collect_weights(held_bytes: int) -> None:
    """Lets go of weights that folding has replaced, where the weights are large.

    What held them refers to itself; left alone it would stay until the compilation is over, and
    the new weights of the backends would come on top.
    """
    if held_bytes > _WORTH_COLLECTING:
        gc.collect()
