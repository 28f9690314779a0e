"""Campaigns: cases until the time is up, failures grouped, the first of each group minimised."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from byoc_mlir_fuzz.case import Case, Kind, Outcome, Settings
from byoc_mlir_fuzz.files import write_case, write_script
from byoc_mlir_fuzz.graphs import ops_in
from byoc_mlir_fuzz.minimise import minimised
from byoc_mlir_fuzz.pool import Pool, worker_pool

_ON_ONE_GROUP = 40.0
"""Maximum time in seconds of minimising one group's case."""


@dataclass
class Group:
    """Group of failures that look alike."""

    kind: Kind
    signature: str
    case: Case
    """First case of the group, minimised."""
    outcome: Outcome
    names: list[str] = field(default_factory=list[str])
    path: Path | None = None


@dataclass
class Tally:
    """Results of a campaign."""

    kinds: Counter[str] = field(default_factory=Counter[str])
    ops: Counter[str] = field(default_factory=Counter[str])
    placements: Counter[str] = field(default_factory=Counter[str])
    groups: dict[tuple[str, str], Group] = field(default_factory=dict[tuple[str, str], Group])
    seconds: float = 0.0

    def failures(self) -> list[Group]:
        """Returns the groups that are failures, most frequent first."""
        return self._sorted(refused=False)

    def refusals(self) -> list[Group]:
        """Returns the groups of valid models that were refused."""
        return self._sorted(refused=True)

    def _sorted(self, refused: bool) -> list[Group]:
        groups = [g for g in self.groups.values() if (g.kind == "refused") == refused]
        return sorted(groups, key=lambda group: -len(group.names))


@dataclass(frozen=True)
class Campaign:
    """Settings of a campaign."""

    settings: Settings
    jobs: int = 1
    timeout: float = 60.0
    out: Path | None = None
    """Folder to which failures are written."""
    say: Callable[[str], None] = lambda text: None
    """Callback for every new failure."""

    def run(self, cases: Iterable[Case], seconds: float | None = None) -> Tally:
        """Judges the cases, no new ones once the time is up, and minimises failures."""
        start = time.monotonic()
        deadline = None if seconds is None else start + seconds
        tally = Tally()
        with worker_pool(self.settings, self.jobs, self.timeout) as pool:
            for case, outcome in pool.judged(_until(deadline, cases)):
                self._count(tally, case, outcome)
            tally.seconds = time.monotonic() - start
            if self.out is not None:
                self._minimise(tally, pool, self.out)
        return tally

    def _count(self, tally: Tally, case: Case, outcome: Outcome) -> None:
        tally.kinds[outcome.kind] += 1
        if not case.mutated:
            tally.ops.update(ops_in(onnx.ModelProto.FromString(case.model).graph))
        tally.placements.update(outcome.placements)
        if not outcome.failed and outcome.kind != "refused":
            return
        key = (outcome.kind, outcome.signature)
        if key not in tally.groups:
            first_line = next(iter(outcome.message.splitlines()), "")
            self.say(f"{case.name}: {outcome.kind}: {outcome.signature}: {first_line}")
            tally.groups[key] = Group(outcome.kind, outcome.signature, case, outcome)
        tally.groups[key].names.append(case.name)

    def _minimise(self, tally: Tally, pool: Pool, out: Path) -> None:
        for group in tally.failures():
            small = minimised(group.case, lambda c, g=group: _same(pool.judge(c), g), _ON_ONE_GROUP)
            outcome = pool.judge(small)
            if outcome.kind == group.kind:  # else it does not fail every time
                group.case, group.outcome = small, outcome
                group.signature = outcome.signature
        tally.groups = _merged(tally.groups.values())
        for number, group in enumerate(tally.failures()):
            stem = f"{group.kind.replace(' ', '-')}-{number}"
            group.path = write_case(group.case, out, stem)
            case = replace(group.case, name=group.names[0])
            write_script(case, group.outcome, self.settings, group.path)


def _same(outcome: Outcome, group: Group) -> bool:
    if outcome.kind != group.kind:
        return False
    return group.kind in ("wrong value", "nondeterminism") or outcome.signature == group.signature


def _merged(groups: Iterable[Group]) -> dict[tuple[str, str], Group]:
    """Merges groups whose minimised cases are alike."""
    merged: dict[tuple[str, str], Group] = {}
    for group in groups:
        there = merged.setdefault((group.kind, group.signature), group)
        if there is not group:
            there.names.extend(group.names)
    return merged


def _until(deadline: float | None, cases: Iterable[Case]) -> Iterator[Case]:
    for case in cases:
        if deadline is not None and time.monotonic() > deadline:
            return
        yield case
