"""Which way to compute each convolution, where packed weights may take so much memory only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Way:
    """A way to compute a convolution."""

    algorithm: str
    milliseconds: float
    weight_bytes: int
    """What its packed weights take."""


def fastest_within(convolutions: Sequence[Sequence[Way]], most: float) -> list[Way]:
    """A way for each convolution: the fastest, or, where their weights take too much together,
    slower ones of smaller weights, in the order of the time that a byte less costs.

    Args:
        convolutions: the ways of each, at least one.
        most: the bytes of all packed weights. Where that cannot be, they are the smallest.
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
    """Faster ways again, where the last step has left room for them."""
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
    """The time that each byte less costs."""
    lost = other.milliseconds - now.milliseconds
    return lost / (now.weight_bytes - other.weight_bytes)
