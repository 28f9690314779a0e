"""Values that are compiled on demand block only the callers that need them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.execution import recent
from byoc_mlir.runtime.execution.recent import Recent

SECONDS = 60


class Value:
    def __init__(self, name: str):
        self.name = name
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def got(values: Recent[str, Value], key: str) -> Value:
    return values.get(lambda: key, lambda: (key, Value(key)))


class SlowMaker:
    """Mock that creates a value as soon as a test allows it."""

    def __init__(self) -> None:
        self.started, self.may_end = threading.Event(), threading.Event()
        self.count = 0

    def __call__(self) -> tuple[str, Value]:
        self.count += 1
        self.started.set()
        assert self.may_end.wait(SECONDS)
        return "slow", Value("slow")


def test_who_has_a_value_does_not_wait_for_one_that_is_made() -> None:
    values, maker = Recent[str, Value](), SlowMaker()
    ready = got(values, "ready")
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(lambda: values.get(lambda: "slow", maker))
        assert maker.started.wait(SECONDS)
        assert pool.submit(lambda: got(values, "ready")).result(SECONDS) is ready
        assert values.latest("ready") is ready
        maker.may_end.set()
        assert slow.result(SECONDS).name == "slow"


def test_a_value_that_two_wait_for_is_made_once() -> None:
    values, maker = Recent[str, Value](), SlowMaker()
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(lambda: values.get(lambda: "slow", maker)) for _ in range(2)]
        assert maker.started.wait(SECONDS)
        maker.may_end.set()
        one, other = (each.result(SECONDS) for each in both)
    assert one is other
    assert maker.count == 1


def test_what_a_failure_leaves_is_made_by_the_next() -> None:
    values = Recent[str, Value]()
    with pytest.raises(ZeroDivisionError):
        values.get(lambda: "a", lambda: ("a", Value(str(1 // 0))))
    assert got(values, "a").name == "a"


def test_a_key_may_change_while_others_are_made() -> None:
    """Checks a key that changes, as when compiling finds that the value of an input matters."""
    values, maker, keys = Recent[str, Value](), SlowMaker(), {"key": "shape"}
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(lambda: values.get(lambda: "other", maker))
        assert maker.started.wait(SECONDS)
        waiting = pool.submit(lambda: values.get(lambda: keys["key"], lambda: ("x", Value("x"))))
        keys["key"] = "slow"
        maker.may_end.set()
        assert waiting.result(SECONDS) is slow.result(SECONDS)


def test_what_is_made_after_the_end_is_closed() -> None:
    values, made = Recent[str, Value](), Value("late")

    def make() -> tuple[str, Value]:
        values.close()
        return "late", made

    with pytest.raises(ExecutionError, match="closed"):
        values.get(lambda: "late", make)
    assert made.is_closed


def test_those_used_last_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "CACHED_SHAPES", 2)
    values = Recent[str, Value]()
    first = got(values, "a")
    got(values, "b")
    assert values.latest("a") is None
    assert got(values, "a") is values.latest("a") is first
    got(values, "c")
    assert list(values.known()) == ["a", "c"]
    values.close()
    assert values.latest("c") is None


def test_what_holds_too_much_memory_goes_but_for_the_last() -> None:
    values = Recent[str, Value](most_bytes=5, bytes_of=lambda value: len(value.name))
    for key in ("aaa", "bb", "cc"):
        got(values, key)
    assert list(values.known()) == ["bb", "cc"]
    got(values, "dddddddd")
    assert list(values.known()) == ["dddddddd"]
