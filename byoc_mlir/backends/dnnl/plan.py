"""What planning a region found out, beside what it wrote into the region."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from xdsl.ir import Operation


@dataclass(frozen=True)
class Plan:
    """Measured times, and on which threads ops run."""

    times: Mapping[Operation, float]
    """Milliseconds of the ops that were measured."""
    serial: Collection[Operation]
    groups: Mapping[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    """Ops to the first one of those that run at the same time, each on one thread."""

    def is_serial(self, op: Operation) -> bool:
        """Whether one thread runs it."""
        return op in self.serial

    def leads(self, op: Operation) -> bool:
        """Whether it is the first of several that run at the same time."""
        return self.groups.get(op) is op

    def runs_beside(self, op: Operation) -> bool:
        """Whether it runs at the same time as one before it."""
        return op in self.groups and not self.leads(op)
