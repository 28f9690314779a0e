"""Where every ONNX node went, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_mlir.names import printable, printable_lines

if TYPE_CHECKING:
    from byoc_mlir.runtime.profile import Profile
    from byoc_mlir.runtime.verification import Verification


@dataclass(frozen=True)
class RegionTimes:
    """What a region takes with its backend and on the host: why it is where it is."""

    backend: str
    obtained: str
    """`estimated`, of one thread, or `measured`."""
    backend_milliseconds: float | None = None
    """`None` where it is not known."""
    host_milliseconds: float | None = None

    def __str__(self) -> str:
        places = {self.backend: self.backend_milliseconds, "host": self.host_milliseconds}
        figures = (
            f"{name} {'unknown' if time is None else f'{time:.3f} ms'}"
            for name, time in places.items()
        )
        return f"{self.obtained}: {', '.join(figures)}"


@dataclass(frozen=True)
class ReportRow:
    """One ONNX node."""

    node: str
    op_type: str
    placement: str
    """A backend's name, `host`, `folded` (computed at compile time) or `removed`."""
    region: str = ""
    composite: str = ""
    reason: str = ""
    """For the host: why no backend took it; for `folded` and `removed`: what became of it."""
    precision: str = ""
    """What it computes with; where that is `f32` though its operands are quantised, also why."""
    implementation: str = ""
    milliseconds: float | None = None
    inputs: tuple[str, ...] = ()
    """The tensors that it reads; none where the model is in MLIR."""
    outputs: tuple[str, ...] = ()
    times: RegionTimes | None = None
    """Of the region that it is in, or was in before that went back to the host."""


@dataclass(frozen=True)
class GuardRow:
    """What sizes must fulfil where something was decided by them."""

    relation: str
    """In terms of the model's symbolic dimensions: `seq == past`."""
    node: str
    """The ONNX node that asked; empty where nobody did."""

    def __str__(self) -> str:
        return f"{self.relation} ({self.node})" if self.node else self.relation


@dataclass(frozen=True)
class Variant:
    """One import of a model with symbolic dimensions, and what is compiled of it."""

    guards: tuple[GuardRow, ...] = ()
    """It is right for all sizes that fulfil these."""
    reason: str = ""
    """Why it is right for one set of input shapes alone, where it is."""
    shapes: tuple[str, ...] = ()
    """The sets of input shapes that it is compiled for, `x[2, 8], y[2, 1]`; none where one program
    serves all."""

    def __str__(self) -> str:
        where = self.reason or ", ".join(map(str, self.guards)) or "all sizes"
        if not self.shapes:
            return f"{where}; one program"
        sets = f"{len(self.shapes)} set{'' if len(self.shapes) == 1 else 's'}"
        return f"{where}; compiled for {sets} of input shapes"


@dataclass(frozen=True)
class Report:
    """One row for every node of the model, in the model's order.

    `str()` gives a table with one line for each node, and only the columns that hold something.
    """

    rows: tuple[ReportRow, ...] = ()
    warnings: tuple[str, ...] = ()
    composites: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many composites of each name there are."""
    multiplications: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many products of convolutions and matrices are computed in each precision."""
    variants: tuple[Variant, ...] = ()
    """The imports of a model with symbolic dimensions; none of other models."""
    compile_seconds: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    """How long each stage of the compilation took."""
    pass_seconds: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    """How long each pass took, over all stages."""

    @staticmethod
    def joined(reports: Sequence[Report]) -> Report:
        """The report of a model whose parts have these; times are those of the first."""
        composites, multiplications = Counter[str](), Counter[str]()
        for report in reports:
            composites.update(report.composites)
            multiplications.update(report.multiplications)
        return Report(
            tuple(row for report in reports for row in report.rows),
            tuple(warning for report in reports for warning in report.warnings),
            composites,
            multiplications,
            tuple(variant for report in reports for variant in report.variants),
            reports[0].compile_seconds,
            reports[0].pass_seconds,
        )

    def __iter__(self) -> Iterator[ReportRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def placed(self, placement: str) -> tuple[ReportRow, ...]:
        """The rows of one backend, or of `host`, `folded` or `removed`."""
        return tuple(row for row in self.rows if row.placement == placement)

    def counts(self) -> dict[str, int]:
        """The number of nodes at each placement, most first."""
        return dict(Counter(row.placement for row in self.rows).most_common())

    def to_json(self) -> str:
        """All rows and warnings as a JSON document."""
        document = {
            "nodes": [asdict(row) for row in self.rows],
            "composites": dict(self.composites),
            "multiplications": dict(self.multiplications),
            "variants": [asdict(variant) for variant in self.variants],
            "warnings": list(self.warnings),
        }
        return json.dumps(document, indent=2)

    def to_html(
        self,
        title: str = "report",
        *,
        profile: Profile | None = None,
        verification: Verification | None = None,
        dump: str | Path | None = None,
    ) -> str:
        """A page with the graph, which needs nothing beside it. See docs/view.md.

        Args:
            title: what the model is called.
            profile: where the time goes: nodes can be coloured by it.
            verification: how far off nodes are: nodes can be coloured by that, too.
            dump: the folder that `compile(dump_ir=…)` wrote: IR and code are shown for what is
                selected.
        """
        from byoc_mlir.view.excerpts import read_details  # few reports are drawn
        from byoc_mlir.view.page import page

        details = None if dump is None else read_details(Path(dump))
        return page(self, title, profile, verification, details)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from byoc_mlir.view.page import frame  # few reports are drawn

        return frame(self)

    def __str__(self) -> str:
        columns = [column for name, column in self._columns() if set(column[1:]) - _TACIT[name]]
        widths = [max(map(len, column)) for column in columns]
        columns = [
            [column[0], "-" * width, *column[1:]]
            for column, width in zip(columns, widths, strict=True)
        ]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in zip(*columns, strict=True)
        ]
        return "\n".join([*lines, *self.summary()])

    def summary(self) -> Iterator[str]:
        """How many nodes went where, precisions, variants and warnings: a text for each."""
        counts = ", ".join(f"{count} {name}" for name, count in self.counts().items())
        yield f"{len(self)} node{'' if len(self) == 1 else 's'}: {counts}"
        if set(self.multiplications) - _TACIT["precision"]:
            yield f"multiplications: {self._shares()}"
        for number, one in enumerate(self.variants, 1):
            yield printable(f"variant {number}: {one}")
        yield from (f"warning: {printable_lines(text)}" for text in self.warnings)

    def _columns(self) -> Iterator[tuple[str, list[str]]]:
        """Each column's name, and its head and cells."""
        for name, head in _COLUMNS.items():
            cells = (getattr(row, name) for row in self.rows)
            yield name, [head, *("" if cell is None else printable(str(cell)) for cell in cells)]

    def _shares(self) -> str:
        """How many multiplications run in which precision, most first."""
        total = sum(self.multiplications.values())
        return ", ".join(
            f"{count / total:.1%} {name}"
            for name, count in Counter(self.multiplications).most_common()
        )


_COLUMNS = {
    "node": "node",
    "op_type": "op",
    "placement": "placement",
    "region": "region",
    "composite": "composite",
    "precision": "precision",
    "implementation": "implementation",
    "times": "whole region",
    "reason": "reason",
}
_TACIT = {name: {"", "f32"} if name == "precision" else {""} for name in _COLUMNS}
"""A column that holds nothing but these is left out."""
