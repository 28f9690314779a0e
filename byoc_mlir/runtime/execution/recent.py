"""LRU cache of values that are compiled at their first use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, Protocol, TypeVar

from byoc_mlir.errors import ExecutionError
from byoc_mlir.locks import ForkSafeLock

CACHED_SHAPES = 16
"""Number of sets of input shapes for which a model with dynamic shapes, or a segment, stays
compiled."""


class _Closable(Protocol):
    def close(self) -> None: ...


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value", bound=_Closable)


class Recent(Generic[_Key, _Value]):
    """LRU cache of `CACHED_SHAPES` values.

    Threads create values one at a time; a lookup of a cached value does not wait for them.

    Args:
        values: values that exist already.
        most_bytes: maximum memory of the values. The value used last stays in any case.
        bytes_of: function that returns the bytes of a value.
    """

    def __init__(
        self,
        values: Mapping[_Key, _Value] | None = None,
        *,
        most_bytes: int = 0,
        bytes_of: Callable[[_Value], int] = lambda _: 0,
    ):
        self._most_bytes, self._bytes_of = most_bytes, bytes_of
        self._lock = ForkSafeLock()
        """Lock that is held briefly, for each access to `_values`."""
        self._making = ForkSafeLock()
        self._values = OrderedDict(values or {})
        self.latest: tuple[_Key, _Value] | None = None
        """Value that was used last, with its key: reading it takes less time than `get`."""
        self._closed = False

    def get(self, key: Callable[[], _Key], make: Callable[[], tuple[_Key, _Value]]) -> _Value:
        """Returns the value of a key.

        Args:
            key: function that returns the key. It is called again after other values were created,
                because that may change all keys.
            make: function that creates the value if it is not cached, and returns it with its key.

        Raises:
            ExecutionError: `close` was called.
        """
        found = self._found(key())
        if found is not None:
            return found
        with self._making:
            found = self._found(key())
            return found if found is not None else self._kept(*make())

    def _found(self, key: _Key) -> _Value | None:
        with self._lock:
            self._check_open()
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
                self.latest = key, value
            return value

    def _kept(self, key: _Key, value: _Value) -> _Value:
        with self._lock:
            if self._closed:
                value.close()
            self._check_open()
            self._values[key] = value
            self.latest = key, value
            while len(self._values) > 1 and self._is_too_much():
                # A call may still be using it: it is freed when the last reference goes.
                self._values.popitem(last=False)
            return value

    def _is_too_much(self) -> bool:
        held = sum(map(self._bytes_of, self._values.values()))
        return len(self._values) > CACHED_SHAPES or held > self._most_bytes

    def _check_open(self) -> None:
        if self._closed:
            raise ExecutionError("the executable is closed; compile the model again")

    def known(self) -> dict[_Key, _Value]:
        """Returns the current values; the value used last is the last one."""
        with self._lock:
            return dict(self._values)

    def close(self) -> None:
        """Closes all values; no further values can be created."""
        with self._lock:
            self._closed, self.latest = True, None
            for value in self._values.values():
                value.close()
