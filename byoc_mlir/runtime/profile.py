"""Where the time of a run goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from byoc_mlir.names import printable, printable_document

WIDTH = 80
"""Columns of the text."""


@dataclass(frozen=True)
class ProfileRow:
    """One step of a run."""

    nodes: tuple[str, ...]
    """The ONNX nodes that it computes."""
    ops: tuple[str, ...]
    """Their types."""
    backend: str
    """A backend's name, or `host`; empty for what is outside of the model."""
    region: str
    implementation: str
    """A kernel of the host, or what the backend calls what it runs."""
    layout: str = ""
    precision: str = ""
    milliseconds: float = 0.0
    multiplications: int = 0
    """The products of convolutions and matrices."""
    bytes: int = 0
    """Read from other steps, inputs and weights, and written for others."""
    idle_milliseconds: float = 0.0
    """How long threads waited meanwhile, the mean of all. Threads that a library keeps count as
    busy: they are not seen."""

    @property
    def title(self) -> str:
        """Its nodes, or what it is where it has none."""
        first, *others = self.nodes or (" ".join(filter(None, (self.region, self.implementation))),)
        return f"{first} and {len(others)} more" if others else first

    @property
    def gflops(self) -> float:
        """Billions of floating-point operations a second, two for each product."""
        return 2 * self.multiplications / self.milliseconds / 1e6 if self.milliseconds else 0.0

    @property
    def gbytes(self) -> float:
        """Billions of bytes a second."""
        return self.bytes / self.milliseconds / 1e6 if self.milliseconds else 0.0


@dataclass(frozen=True)
class Profile:
    """The steps of a run in their order, and last what is outside of them.

    Of several runs it is the one that took the median time.

    `str()` gives a table of 80 columns, slowest first.
    """

    rows: tuple[ProfileRow, ...]
    milliseconds: float
    """Of the run as its caller sees it."""
    runs: int
    threads: int

    @property
    def idle_milliseconds(self) -> float:
        """How long threads waited, the mean of all: part of the time of the rows."""
        return sum(row.idle_milliseconds for row in self.rows)

    def __iter__(self) -> Iterator[ProfileRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_json(self) -> str:
        """All rows as a JSON document."""
        rows = [
            {
                **asdict(row),
                "gflops": row.gflops,
                "gbytes": row.gbytes,
                "share": self._share(row.milliseconds),
            }
            for row in self.rows
        ]
        document = {
            "milliseconds": self.milliseconds,
            "idle_milliseconds": self.idle_milliseconds,
            "runs": self.runs,
            "threads": self.threads,
            "rows": rows,
        }
        return json.dumps(document, indent=2)

    def to_chrome_trace(self) -> str:
        """The run in Chrome's trace format, which Perfetto and `chrome://tracing` open.

        https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
        """
        events: list[dict[str, object]] = [
            {"ph": "M", "pid": 1, "tid": 1, "name": "process_name", "args": {"name": "byoc_mlir"}}
        ]
        start = 0.0
        for row in self.rows:
            events.append(
                {
                    "ph": "X",
                    "pid": 1,
                    "tid": 1,
                    "name": row.title,
                    "cat": row.backend or "call",
                    "ts": start * 1e3,
                    "dur": row.milliseconds * 1e3,
                    "args": asdict(row),
                }
            )
            events.append(
                {
                    "ph": "C",
                    "pid": 1,
                    "tid": 1,
                    "name": "busy threads",
                    "ts": start * 1e3,
                    "args": {"threads": self._busy_threads(row)},
                }
            )
            start += row.milliseconds
        return json.dumps(printable_document({"traceEvents": events, "displayTimeUnit": "ms"}))

    def _busy_threads(self, row: ProfileRow) -> float:
        idle = row.idle_milliseconds / row.milliseconds if row.milliseconds else 0.0
        return self.threads * (1 - idle)

    def __str__(self) -> str:
        lines = [
            f"{row.milliseconds:8.3f} {self._share(row.milliseconds):6.1%}"
            f" {_figure(row.gflops):>8} {_figure(row.gbytes):>6}  {_text(row)}"
            for row in sorted(self.rows, key=lambda row: -row.milliseconds)
        ]
        lines.insert(0, f"{'ms':>8} {'share':>6} {'GFLOP/s':>8} {'GB/s':>6}  step")
        if self.threads > 1:
            idle = self.idle_milliseconds
            text = f"{idle:8.3f} {self._share(idle):6.1%} {'':>8} {'':>6}  threads idle"
            lines.append(f"{text} within these rows, on average")
        lines.append(
            f"{self.milliseconds:8.3f} 100.0%  {len(self.rows)} rows; the median of {self.runs}"
            f" runs, {self.threads} thread(s)"
        )
        return "\n".join(lines)

    def _share(self, milliseconds: float) -> float:
        return milliseconds / self.milliseconds if self.milliseconds else 0.0


def _figure(value: float) -> str:
    return f"{value:.1f}" if value else ""


def _text(row: ProfileRow) -> str:
    """What fits into the rest of the line: the nodes, the types of ops, and what runs them."""
    ops = "+".join(row.ops)
    described = f"{row.title} ({ops})" if ops else row.title
    runs = f"{row.backend}: {row.implementation}" if row.nodes else row.backend
    room = WIDTH - 33
    text = printable(f"{described}, {runs}" if runs else described)
    return text if len(text) <= room else text[: room - 1] + "…"
