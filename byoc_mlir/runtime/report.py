"""Where every ONNX node went, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field


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
    implementation: str = ""
    milliseconds: float | None = None


@dataclass(frozen=True)
class Report:
    """One row for every node of the model, in the model's order.

    `str()` gives a table with one line for each node, and only the columns that hold something.
    """

    rows: tuple[ReportRow, ...] = ()
    warnings: tuple[str, ...] = ()
    composites: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many composites of each name there are."""
    compile_seconds: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    """How long each stage of the compilation took."""
    pass_seconds: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    """How long each pass took, over all stages."""

    @staticmethod
    def joined(reports: Sequence[Report]) -> Report:
        """The report of a model whose parts have these; times are those of the first."""
        composites = Counter[str]()
        for report in reports:
            composites.update(report.composites)
        return Report(
            tuple(row for report in reports for row in report.rows),
            tuple(warning for report in reports for warning in report.warnings),
            composites,
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
            "warnings": list(self.warnings),
        }
        return json.dumps(document, indent=2)

    def __str__(self) -> str:
        columns = [column for column in map(self._column, _COLUMNS) if any(column[1:])]
        widths = [max(map(len, column)) for column in columns]
        columns = [
            [column[0], "-" * width, *column[1:]]
            for column, width in zip(columns, widths, strict=True)
        ]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in zip(*columns, strict=True)
        ]
        summary = ", ".join(f"{count} {name}" for name, count in self.counts().items())
        lines.append(f"{len(self)} node{'' if len(self) == 1 else 's'}: {summary}")
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    def _column(self, name: str) -> list[str]:
        """The column's head and its cells."""
        return [_COLUMNS[name], *(str(getattr(row, name)) for row in self.rows)]


_COLUMNS = {
    "node": "node",
    "op_type": "op",
    "placement": "placement",
    "region": "region",
    "composite": "composite",
    "implementation": "implementation",
    "reason": "reason",
}
