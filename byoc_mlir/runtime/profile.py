"""Profile of a run: the time of each step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from byoc_mlir.names import printable, printable_document

WIDTH = 80
"""Columns of the text."""


@dataclass(frozen=True)
class ProfileRow:
    """Step of a run."""

    nodes: tuple[str, ...]
    """ONNX nodes that it computes."""
    ops: tuple[str, ...]
    """Types of the nodes."""
    backend: str
    """Name of a backend, or `host`; empty for time outside of the model."""
    region: str
    implementation: str
    """Kernel of the host, or the backend's name for its code."""
    layout: str = ""
    precision: str = ""
    milliseconds: float = 0.0
    multiplications: int = 0
    """MACs of convolutions and GEMMs."""
    bytes: int = 0
    """Bytes read from other steps, inputs and weights, and written for other steps."""
    idle_milliseconds: float = 0.0
    """Mean waiting time of the threads in this step. A library's own threads count as busy, since
    their waiting is not visible."""

    device: str = ""
    """Device, if the step copies, waits, or enqueues a region: its time is the host's."""

    @property
    def title(self) -> str:
        """Returns the step's nodes, or its region and implementation if it has no nodes."""
        first, *others = self.nodes or (" ".join(filter(None, (self.region, self.implementation))),)
        return f"{first} and {len(others)} more" if others else first

    @property
    def gflops(self) -> float:
        """Returns billions of floating-point operations a second, two for each MAC."""
        return 2 * self.multiplications / self.milliseconds / 1e6 if self.milliseconds else 0.0

    @property
    def gbytes(self) -> float:
        """Returns billions of bytes a second."""
        return self.bytes / self.milliseconds / 1e6 if self.milliseconds else 0.0


@dataclass(frozen=True)
class Profile:
    """Steps of a run in order; the last row is the time outside of all steps.

    If several runs were measured, the profile is of the run with the median time.

    `str()` returns a table of 80 columns, slowest step first.
    """

    rows: tuple[ProfileRow, ...]
    milliseconds: float
    """Time of the run, measured by the caller."""
    runs: int
    threads: int

    @property
    def idle_milliseconds(self) -> float:
        """Returns the mean time for which threads waited; the times of the rows include it."""
        return sum(row.idle_milliseconds for row in self.rows)

    def __iter__(self) -> Iterator[ProfileRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_json(self) -> str:
        """Returns all rows as a JSON document."""
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
        """Returns the run in Chrome's trace format, which Perfetto and `chrome://tracing` open.

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
    """Returns the nodes, the op types and the implementation, cut to the remaining width of the
    row.
    """
    ops = "+".join(row.ops)
    described = f"{row.title} ({ops})" if ops else row.title
    runs = f"{row.backend}: {row.implementation}" if row.nodes else row.backend
    room = WIDTH - 33
    text = printable(f"{described}, {runs}" if runs else described)
    return text if len(text) <= room else text[: room - 1] + "…"
