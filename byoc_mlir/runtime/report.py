"""Where every ONNX node went, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
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
    """One row for every node of the model, in the model's order; `str()` gives a table."""

    rows: tuple[ReportRow, ...] = ()
    warnings: tuple[str, ...] = ()
    composites: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many composites of each name there are."""
    compile_seconds: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    """How long each stage of the compilation took."""
    pass_seconds: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    """How long each pass took, over all stages."""

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
        header = ("node", "op", "placement", "region", "composite", "reason")
        cells = [
            (row.node, row.op_type, row.placement, row.region, row.composite, row.reason)
            for row in self.rows
        ]
        widths = [max(len(line[column]) for line in [header, *cells]) for column in range(6)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in [header, tuple("-" * width for width in widths), *cells]
        ]
        summary = ", ".join(f"{count} {name}" for name, count in self.counts().items())
        return "\n".join([*lines, summary, *(f"warning: {text}" for text in self.warnings)])
