"""Check of events in Chrome's trace format against its description."""

from __future__ import annotations

from typing import Any

_METADATA = {"process_name", "process_labels", "process_sort_index", "thread_name"}
_UNITS = {"ms", "ns"}


def checked_spans(trace: Any) -> list[dict[str, Any]]:
    """Returns the complete events of a trace in the form of an object, in order.

    Every other event has to be metadata, or a counter. Events of one thread may follow or contain
    each other, but not overlap.
    """
    assert isinstance(trace, dict)
    assert isinstance(trace["traceEvents"], list)
    assert trace.get("displayTimeUnit", "ms") in _UNITS
    spans: list[dict[str, Any]] = []
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event.get("args", {}), dict)
        if event["ph"] == "M":
            assert event["name"] in _METADATA
            continue
        if event["ph"] == "C":
            assert event["ts"] >= 0
            assert all(isinstance(value, int | float) for value in event["args"].values())
            assert event["args"]
            continue
        assert event["ph"] == "X"
        assert isinstance(event.get("cat", ""), str)
        for key in ("ts", "dur"):
            assert isinstance(event[key], int | float)
            assert event[key] >= 0
        spans.append(event)
    _check_nesting(spans)
    return spans


def _check_nesting(spans: list[dict[str, Any]]) -> None:
    ends: dict[tuple[int, int], list[float]] = {}
    for span in sorted(spans, key=lambda one: (one["ts"], -one["dur"])):
        open_ends = ends.setdefault((span["pid"], span["tid"]), [])
        end = span["ts"] + span["dur"]
        while open_ends and open_ends[-1] <= span["ts"] + _ROUNDING:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1] + _ROUNDING
        open_ends.append(end)


_ROUNDING = 1e-6
"""Rounding error of times in microseconds."""
