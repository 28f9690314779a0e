"""Planner of the arena: buffers whose lifetimes do not overlap share memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from byoc_mlir.abi import ARENA_ALIGNMENT
from byoc_mlir.dims import Size, ceildiv, common_factor, divided, largest


@dataclass(frozen=True)
class BufferRequest:
    """Buffer that is live from op `first` to op `last` of a block, both included."""

    size: int
    """Size in bytes."""
    first: int
    last: int


def plan_offsets(requests: Sequence[BufferRequest]) -> tuple[list[int], int]:
    """Returns an offset for each request and the arena's size; buffers that are live at the same
    time never overlap.

    Places large requests first, each in the smallest gap that it fits. Offsets are multiples of 64.
    """
    offsets = [0] * len(requests)
    placed: list[tuple[int, int, BufferRequest]] = []
    order = sorted(range(len(requests)), key=lambda n: (-requests[n].size, requests[n].first, n))
    for number in order:
        request = requests[number]
        size = -(-request.size // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
        offset = _best_gap(request, size, placed)
        offsets[number] = offset
        placed.append((offset, offset + size, request))
    return offsets, max((end for _, end, _ in placed), default=0)


@dataclass(frozen=True)
class DynamicRequest:
    """Buffer like `BufferRequest`, whose size may be symbolic."""

    size: Size
    hint: int
    """Expected size, by which the planner orders the requests."""
    first: int
    last: int


def plan_slots(requests: Sequence[DynamicRequest]) -> tuple[list[Size], Size]:
    """Returns an offset for each request and the arena's size, which hold for all symbolic sizes.

    Assigns whole slots: requests in one slot never live at once, and a slot is as large as its
    largest member. Places large requests first, each in the first free slot; slots follow each
    other.
    """
    places: list[list[int]] = []
    order = sorted(range(len(requests)), key=lambda n: (-requests[n].hint, requests[n].first, n))
    for number in order:
        for place in places:
            if not any(_meet(requests[number], requests[other]) for other in place):
                place.append(number)
                break
        else:
            places.append([number])
    offsets: list[Size] = [0] * len(requests)
    total: Size = 0
    for place in places:
        for number in place:
            offsets[number] = total
        total = total + _largest([_rounded(requests[number].size) for number in place])
    return offsets, total


def _meet(one: DynamicRequest, other: DynamicRequest) -> bool:
    """True if both buffers are live at the same time."""
    return one.first <= other.last and other.first <= one.last


def _largest(sizes: Iterable[Size]) -> Size:
    """Returns the maximum of sizes; of multiples of one size, it names only the greatest."""
    factors: dict[Size, int] = {}
    for size in sizes:
        factor = common_factor([size])
        unit = divided(size, factor or 1)
        factors[unit] = max(factor, factors.get(unit, 0))
    return largest(*(unit * factor for unit, factor in factors.items()))


def _rounded(size: Size) -> Size:
    return ceildiv(size, ARENA_ALIGNMENT) * ARENA_ALIGNMENT


def _best_gap(
    request: BufferRequest, size: int, placed: Sequence[tuple[int, int, BufferRequest]]
) -> int:
    neighbours = sorted(
        (start, end)
        for start, end, other in placed
        if other.first <= request.last and request.first <= other.last
    )
    best, best_slack, free_from = -1, -1, 0
    for start, end in neighbours:
        slack = start - free_from - size
        if slack >= 0 and (best < 0 or slack < best_slack):
            best, best_slack = free_from, slack
        free_from = max(free_from, end)
    return free_from if best < 0 else best
