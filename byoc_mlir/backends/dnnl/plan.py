"""What planning a region found out, beside what it wrote into the region."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from xdsl.ir import Operation


@dataclass(frozen=True)
class Plan:
    """Measured times, and which ops are too short to be shared between threads."""

    times: Mapping[Operation, float]
    """Milliseconds of the ops that were measured."""
    serial: Collection[Operation]

    def is_serial(self, op: Operation) -> bool:
        """Whether one thread runs it."""
        return op in self.serial
