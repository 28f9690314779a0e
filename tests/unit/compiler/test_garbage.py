"""Garbage collector while compiling: objects that it visits, and frozen ones."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Generator

import pytest

from byoc_mlir.compiler import garbage
from byoc_mlir.compiler.garbage import collection_paused, modules_imported


class _Node:
    """Object that refers to itself, as IR does."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def collecting(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Resets the garbage collector to its initial state, before and after a test."""
    monkeypatch.setattr(garbage, "_finds_frozen", False)
    gc.enable()
    gc.unfreeze()
    yield
    gc.unfreeze()


@collection_paused()
def _made() -> weakref.ref[_Node]:
    assert not gc.isenabled()
    return weakref.ref(_Node())


def test_what_was_made_is_collected_at_the_end() -> None:
    assert _made()() is None
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


@collection_paused()
def _collected_inside() -> weakref.ref[_Node]:
    made = weakref.ref(_Node())
    gc.collect()
    return made


def test_a_collection_inside_finds_what_was_made_there() -> None:
    assert _collected_inside()() is None


def test_only_the_outermost_pause_ends_it() -> None:
    with collection_paused():
        with modules_imported():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_stays_is_old_at_once() -> None:
    with modules_imported():
        kept = [_Node()]
    assert any(one is kept for one in gc.get_objects(generation=2))
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("pause", [collection_paused, modules_imported])
def test_what_the_process_froze_stays_frozen(pause: type) -> None:
    kept = [_Node()]
    gc.freeze()
    with pause():
        pass
    assert not any(one is kept for one in gc.get_objects())


def test_what_the_process_froze_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts the calls, each of which visits all frozen objects."""
    counts = list[int]()
    gc.freeze()
    count = gc.get_freeze_count
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counts.append(count()) or counts[-1])
    for pause in (collection_paused, modules_imported, collection_paused):
        with pause():
            pass
    assert len(counts) == 1
    assert counts[0] > 0
