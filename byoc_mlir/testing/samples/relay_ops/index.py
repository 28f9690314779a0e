"""Samples of ops that read or write at computed positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from byoc_mlir.dialects.relay.base import PyValue
from byoc_mlir.testing.samples.relay_ops.sample import Range, Rest, Sample, Shape
from byoc_mlir.testing.samples.relay_ops.shapes import fixed

_DATA: Shape = (4, 5, 6)


def _gathers(rest: Rest, *attributes: Mapping[str, PyValue]) -> Iterator[Sample]:
    for each in attributes:
        sample = Sample(_DATA, rest, each, dtypes={1: "int64"}, ranges={1: (0, 3)})
        yield replace(sample, constants=True)
        yield sample


def _takes() -> Iterator[Sample]:
    yield from _gathers(fixed((3,)), {"axis": 0}, {"axis": 1})
    yield from _gathers(fixed((2, 2)), {"axis": -1})
    yield Sample(_DATA, fixed(()), dtypes={1: "int32"}, ranges={1: (0, 3)}, note="one place")
    yield Sample(_DATA, fixed((3,)), dtypes={1: "int64"}, ranges={1: (-4, -1)}, note="from the end")


def _scatter(
    places: Shape, updates: Shape, first: Range, note: str = "", **attributes: PyValue
) -> Sample:
    rest = fixed(places, updates)
    return Sample(_DATA, rest, attributes, dtypes={1: "int64"}, ranges={1: first}, note=note)


def _scattered_elements() -> Iterator[Sample]:
    one, several = (1, 5, 6), (3, 5, 6)
    yield _scatter(one, one, (0, 3))
    yield replace(_scatter(one, one, (0, 3)), constants=True)
    yield _scatter(one, one, (-4, -1), "from the end")
    yield _scatter((4, 1, 6), (4, 1, 6), (0, 4), axis=1)
    yield _scatter((2, 3, 1), (2, 3, 1), (0, 5), "a part of the data", axis=-1)
    yield _scatter(several, several, (0, 3), "the last of several for one place")
    for reduction in ("add", "mul", "max", "min"):
        yield _scatter(several, several, (0, 3), reduction=reduction)


def _scattered_slices() -> Iterator[Sample]:
    yield _scatter((1, 1), (1, 5, 6), (0, 3))
    yield replace(_scatter((1, 1), (1, 5, 6), (0, 3)), constants=True)
    yield _scatter((1, 2), (1, 6), (0, 3))
    yield _scatter((1, 3), (1,), (0, 3), "one element")
    yield _scatter((1, 2), (1, 6), (-4, -1), "from the end")
    yield _scatter((6, 1), (6, 5, 6), (0, 3), "the last of several for one place")
    for reduction in ("add", "mul", "max", "min"):
        yield _scatter((6, 2), (6, 6), (0, 3), reduction=reduction)


def _sorted() -> Iterator[Sample]:
    kinds: Sequence[dict[str, PyValue]] = (
        {"k": 3},
        {"k": 1, "axis": -1},
        {"k": 5, "axis": 1},
        {"k": 3, "axis": 1, "is_ascend": True},
    )
    for attributes in kinds:
        yield Sample(_DATA, attributes=attributes)
    yield Sample((3, 16), attributes={"k": 6, "axis": 1}, dtype="int32", note="equal values")
    yield Sample(
        (3, 16), attributes={"k": 6, "axis": 1}, values=(-3.0, -0.2), note="negative values"
    )
    yield Sample((4, 16), attributes={"k": 5, "axis": 1}, special=True, note="special values")


def _scans() -> Iterator[Sample]:
    kinds: Sequence[dict[str, PyValue]] = (
        {"axis": 0},
        {"axis": 1},
        {"exclusive": True},
        {"reverse": True},
    )
    for attributes in kinds:
        yield Sample((3, 8), attributes=attributes)


SAMPLES_WITH_PLACES: Mapping[str, Sequence[Sample]] = {
    "take": list(_takes()),
    "gather": [
        *_gathers(fixed((3, 5, 6)), {"axis": 0}),
        *_gathers(fixed((4, 2, 6)), {"axis": 1}),
    ],
    "gather_nd": list(_gathers(fixed((4, 2)), {}, {"batch_dims": 1})),
    "scatter_elements": list(_scattered_elements()),
    "scatter_nd": list(_scattered_slices()),
    "topk": list(_sorted()),
    "cumsum": list(_scans()),
    "cumprod": list(_scans()),
}
"""Samples by Relay name; the first sample of an op is its plainest."""
