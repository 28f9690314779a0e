"""Choice of an algorithm for each convolution under a limit on the memory of packed weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Way:
    """Candidate algorithm of a convolution."""

    algorithm: str
    milliseconds: float
    weight_bytes: int
    """Bytes of the packed weights."""


def fastest_within(convolutions: Sequence[Sequence[Way]], most: float) -> list[Way]:
    """Chooses the fastest algorithms whose packed weights take at most `most` bytes.

    Starts with the fastest algorithm of each convolution. While the weights exceed `most`, the
    function switches a convolution to an algorithm with smaller weights, the one with the least
    time lost per byte saved.

    Args:
        convolutions: candidates of each convolution, at least one.
        most: limit on the bytes of all packed weights. If no choice meets the limit, the algorithms
            have the smallest weights.
    """
    taken = [min(ways, key=lambda way: way.milliseconds) for ways in convolutions]
    while _bytes(taken) > most:
        smaller = [
            (_price(now, way), index, way)
            for index, now in enumerate(taken)
            for way in convolutions[index]
            if way.weight_bytes < now.weight_bytes
        ]
        if not smaller:
            return taken
        _, index, way = min(smaller, key=lambda step: step[:2])
        taken[index] = way
    return _with_room_used(taken, convolutions, most)


def _with_room_used(
    taken: list[Way], convolutions: Sequence[Sequence[Way]], most: float
) -> list[Way]:
    """Switches back to faster algorithms while they fit in the remaining memory."""
    while True:
        room = most - _bytes(taken)
        faster = [
            (way.milliseconds - now.milliseconds, index, way)
            for index, now in enumerate(taken)
            for way in convolutions[index]
            if way.milliseconds < now.milliseconds and way.weight_bytes - now.weight_bytes <= room
        ]
        if not faster:
            return taken
        _, index, way = min(faster, key=lambda step: step[:2])
        taken[index] = way


def _bytes(ways: Sequence[Way]) -> int:
    return sum(way.weight_bytes for way in ways)


def _price(now: Way, other: Way) -> float:
    """Returns the time that a switch from `now` to `other` costs, per byte of weights that it
    saves.
    """
    lost = other.milliseconds - now.milliseconds
    return lost / (now.weight_bytes - other.weight_bytes)
