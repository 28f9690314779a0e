"""Findings of the kit, and tables of them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rich.console import Console
from rich.table import Table

Status: TypeAlias = Literal["offloaded", "refused", "folded", "untested", "failed"]


@dataclass(frozen=True)
class Outcome:
    """Outcome of one case of an op or a composite."""

    subject: str
    label: str
    status: Status
    """Outcome of a case.

    - `offloaded`: the backend ran it.
    - `refused`: the backend's rules left it to the host.
    - `folded`: simplification removed it.
    - `untested`: no model of the kit is offloaded, so the claim is not tested.
    """
    detail: str = ""
    """Reason for a refusal, or description of a failure."""
    error: float = 0.0
    """Largest error, relative to the largest value."""
    reproduce: str = ""
    """Command that repeats a failing case, if the case was saved."""


@dataclass(frozen=True)
class Coverage:
    """Share of a network that the backend ran, as pairs of a part and the whole."""

    network: str
    nodes: tuple[int, int]
    kinds: tuple[int, int]
    work: tuple[int, int]
    """Numbers of arithmetic operations, estimated."""
    regions: int
    error: float


@dataclass(frozen=True)
class ConformanceReport:
    """Outcomes of a run of the kit; `str()` returns them as tables."""

    backend: str
    outcomes: tuple[Outcome, ...]
    coverage: tuple[Coverage, ...]
    known_untested: frozenset[str] = frozenset()
    """Ops and composites that the kit cannot test, as the vendor knows."""

    @property
    def failures(self) -> Sequence[Outcome]:
        """Returns the outcomes that failed."""
        return [outcome for outcome in self.outcomes if outcome.status == "failed"]

    @property
    def untested(self) -> Sequence[Outcome]:
        """Returns the claims that could not be tried, without the known ones."""
        return [
            outcome
            for outcome in self.outcomes
            if outcome.status == "untested" and outcome.subject not in self.known_untested
        ]

    @property
    def passed(self) -> bool:
        """True if every claim was tried and nothing failed."""
        return not self.failures and not self.untested

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=118)
        console.print(self.subjects_table())
        for outcome in self.outcomes:
            if outcome.status in ("failed", "untested"):
                label = f" ({outcome.label})" if outcome.label else ""
                line = f"{outcome.status.upper()} {outcome.subject}{label}: {outcome.detail}"
                console.print(line, markup=False, soft_wrap=True)
                if outcome.reproduce:
                    console.print(f"  {outcome.reproduce}", markup=False, soft_wrap=True)
        if self.coverage:
            console.print(self.coverage_table())
        file = console.file
        assert isinstance(file, io.StringIO)
        return file.getvalue()

    def subjects_table(self) -> Table:
        """Returns a table with a row for each op and composite."""
        counts = f"{len(self.failures)} failed, {len(self.untested)} untested"
        decision = "passed" if self.passed else counts
        table = Table(title=f"backend '{self.backend}': {decision}", title_justify="left")
        table.add_column("op or composite")
        for name in ("offloaded", "refused", "failed", "largest error"):
            table.add_column(name, justify="right")
        table.add_column("note", ratio=1)
        for subject in dict.fromkeys(outcome.subject for outcome in self.outcomes):
            mine = [outcome for outcome in self.outcomes if outcome.subject == subject]
            counts = [
                sum(outcome.status == status for outcome in mine)
                for status in ("offloaded", "refused", "failed")
            ]
            noted = [o.detail for o in mine if o.status in ("refused", "folded")]
            table.add_row(
                subject,
                *map(str, counts),
                f"{max(outcome.error for outcome in mine):.1e}",
                "; ".join(dict.fromkeys(filter(None, noted))),
            )
        return table

    def coverage_table(self) -> Table:
        """Returns a table with a row for each network."""
        table = Table(title="offloaded", title_justify="left")
        for name in ("network", "nodes", "op kinds", "estimated work", "regions", "largest error"):
            table.add_column(name, justify="left" if name == "network" else "right")
        for row in self.coverage:
            table.add_row(
                row.network,
                _share(row.nodes),
                _share(row.kinds),
                f"{100 * row.work[0] / max(row.work[1], 1):.1f} %",
                str(row.regions),
                f"{row.error:.1e}",
            )
        return table


def _share(pair: tuple[int, int]) -> str:
    part, whole = pair
    return f"{part} of {whole}, {100 * part / max(whole, 1):.0f} %"
