"""Measurements as a table in Markdown and as a plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engines import PEERS
from measure import Failure, Measurement


@dataclass(frozen=True)
class Row:
    """Results of all engines on one model with one number of threads."""

    model: str
    threads: int
    quantile: float
    results: dict[str, Measurement | Failure]

    def latency(self, engine: str) -> float | None:
        """Returns the quantile of the latencies in milliseconds, or `None` if it was not
        measured."""
        result = self.results.get(engine)
        return result.quantile(self.quantile) if isinstance(result, Measurement) else None

    def ratio(self, engine: str, peers: Sequence[str]) -> float | None:
        """Returns the latency relative to the fastest of `peers`."""
        own = self.latency(engine)
        others = [latency for peer in peers if (latency := self.latency(peer)) is not None]
        return own / min(others) if own is not None and others else None


def rows_of(results: Iterable[Measurement | Failure], quantile: float) -> list[Row]:
    """Groups results by model and threads, in the order of measuring."""
    rows: dict[tuple[str, int], Row] = {}
    for result in results:
        key = (result.model, result.threads)
        rows.setdefault(key, Row(*key, quantile, {})).results[result.engine] = result
    return list(rows.values())


def geometric_mean(values: Sequence[float]) -> float:
    """Returns the geometric mean of positive values, at least one."""
    return math.exp(sum(map(math.log, values)) / len(values))


def contenders(engines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the engines of this project and their peers: ONNX Runtime and OpenVINO, or else all
    others.
    """
    judged = [engine for engine in engines if engine.startswith("byoc")]
    rest = [engine for engine in engines if engine not in judged]
    return judged, [engine for engine in rest if engine in PEERS] or rest


def ratios(rows: Sequence[Row], engine: str, peers: Sequence[str]) -> list[float]:
    """Returns every ratio that exists."""
    return [ratio for row in rows if (ratio := row.ratio(engine, peers)) is not None]


def latency_table(rows: Sequence[Row], engines: Sequence[str]) -> str:
    """Returns the table of latencies in milliseconds, ratios to the fastest peer, and the largest
    error.
    """
    judged, peers = contenders(engines)
    head = ["model", "threads", *engines, *(f"{engine} / best peer" for engine in judged), "error"]
    lines = [table_row(head), table_row(["---", *["---:"] * (len(head) - 1)])]
    lines += [table_row(_latency_cells(row, engines)) for row in rows]
    for threads in sorted({row.threads for row in rows}):
        chosen = [row for row in rows if row.threads == threads]
        means = [ratios(chosen, engine, peers) for engine in judged]
        if any(means):
            cells = [_ratio(geometric_mean(mean)) if mean else "" for mean in means]
            lines.append(
                table_row(["**geometric mean**", str(threads), *[""] * len(engines), *cells, ""])
            )
    return "\n".join(lines)


def _latency_cells(row: Row, engines: Sequence[str]) -> list[str]:
    judged, peers = contenders(engines)
    return [
        row.model,
        str(row.threads),
        *(_latency_cell(row, engine) for engine in engines),
        *(_ratio(row.ratio(engine, peers)) for engine in judged),
        _largest_error(row, judged or engines),
    ]


def _latency_cell(row: Row, engine: str) -> str:
    is_failed = isinstance(row.results.get(engine), Failure)
    return "failed" if is_failed else rounded(row.latency(engine))


def cost_table(rows: Sequence[Row], engines: Sequence[str]) -> str:
    """Returns the table of seconds from file to first output, without imports, and of peak memory
    in MB.
    """
    head = [
        "model",
        "threads",
        *(f"{engine} s" for engine in engines),
        *(f"{engine} MB" for engine in engines),
    ]
    lines = [table_row(head), table_row(["---", *["---:"] * (len(head) - 1)])]
    for row in rows:
        started = [
            result.started if isinstance(result := row.results.get(engine), Measurement) else None
            for engine in engines
        ]
        seconds = [s and s.compile_seconds + s.first_run_seconds for s in started]
        memory = [s and s.peak_megabytes for s in started]
        cells = [row.model, str(row.threads), *map(rounded, seconds), *map(rounded, memory)]
        lines.append(table_row(cells))
    return "\n".join(lines)


def plot(rows: Sequence[Row], engines: Sequence[str], path: Path) -> None:
    """Plots bars of latency relative to the fastest peer, one panel for each number of threads."""
    from matplotlib import pyplot  # only here: an optional dependency

    _, peers = contenders(engines)
    counts = sorted({row.threads for row in rows})
    height = 1.5 + 0.28 * len(engines) * len(rows) / len(counts)
    figure, axes = pyplot.subplots(
        1, len(counts), figsize=(6 * len(counts), height), squeeze=False, layout="constrained"
    )
    for axis, threads in zip(axes[0], counts, strict=True):
        chosen = [row for row in rows if row.threads == threads]
        for index, engine in enumerate(engines):
            offset = (index - (len(engines) - 1) / 2) * 0.8 / len(engines)
            positions = [position + offset for position in range(len(chosen))]
            widths = [row.ratio(engine, peers) or 0.0 for row in chosen]
            bars = axis.barh(positions, widths, 0.8 / len(engines), label=engine)
            axis.bar_label(bars, fmt="%.2f", padding=2, fontsize="x-small")
        axis.axvline(1.0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(chosen)), [row.model for row in chosen])
        axis.invert_yaxis()
        axis.set_xlabel("latency / fastest peer (less is better)")
        axis.set_title(f"{threads} thread{'s' if threads > 1 else ''}")
    axes[0][0].legend()
    figure.savefig(path)


def _largest_error(row: Row, engines: Sequence[str]) -> str:
    found = [row.results.get(engine) for engine in engines]
    errors = [result.error for result in found if isinstance(result, Measurement)]
    return f"{max(errors):.0e}" if errors else "-"


def rounded(value: float | None) -> str:
    """Returns a value with three digits; `-` for `None`."""
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 1 else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def table_row(cells: Iterable[str]) -> str:
    """Returns a row in Markdown."""
    return f"| {' | '.join(cells)} |"
