"""Attribute `byoc.times`: a region's estimated or measured times on its backend and on the host."""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, StringAttr, f64
from xdsl.ir import Attribute, Operation

from byoc_mlir.dialects.byoc import TIMES
from byoc_mlir.runtime.report import RegionTimes

_BACKEND, _OBTAINED = "backend", "obtained"
_BACKEND_MILLISECONDS, _HOST_MILLISECONDS = "backend_milliseconds", "host_milliseconds"


def set_times(op: Operation, times: RegionTimes) -> None:
    """Writes the attribute `byoc.times` of an op, and replaces an earlier value."""
    found: dict[str, Attribute] = {
        _BACKEND: StringAttr(times.backend),
        _OBTAINED: StringAttr(times.obtained),
    }
    if times.backend_milliseconds is not None:
        found[_BACKEND_MILLISECONDS] = FloatAttr(times.backend_milliseconds, f64)
    if times.host_milliseconds is not None:
        found[_HOST_MILLISECONDS] = FloatAttr(times.host_milliseconds, f64)
    op.attributes[TIMES] = DictionaryAttr(found)


def times_of(op: Operation) -> RegionTimes | None:
    """Returns the times in `byoc.times`, or `None` without the attribute."""
    said = op.attributes.get(TIMES)
    if not isinstance(said, DictionaryAttr):
        return None
    return RegionTimes(
        _text(said, _BACKEND),
        _text(said, _OBTAINED),
        _number(said, _BACKEND_MILLISECONDS),
        _number(said, _HOST_MILLISECONDS),
    )


def _text(said: DictionaryAttr, name: str) -> str:
    value = said.data.get(name)
    return value.data if isinstance(value, StringAttr) else ""


def _number(said: DictionaryAttr, name: str) -> float | None:
    value = said.data.get(name)
    return value.value.data if isinstance(value, FloatAttr) else None
