"""What a server counts, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass
class _Histogram:
    bounds: Sequence[float]
    counts: list[int] = field(default_factory=list[int])
    total: float = 0.0
    count: int = 0

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.bounds)

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1
        for number, bound in enumerate(self.bounds):
            self.counts[number] += value <= bound

    def lines(self, name: str, labels: str) -> Iterator[str]:
        for bound, count in zip(self.bounds, self.counts, strict=True):
            yield f'{name}_bucket{{{labels},le="{bound}"}} {count}'
        yield f'{name}_bucket{{{labels},le="+Inf"}} {self.count}'
        yield f"{name}_sum{{{labels}}} {self.total:.9g}"
        yield f"{name}_count{{{labels}}} {self.count}"


class Metrics:
    """Counts of one server process.

    Args:
        model: the name of what is served.
        replica: tells the process from others that serve the same.
    """

    def __init__(self, model: str, replica: str):
        self._labels = f'model="{_quoted(model)}",replica="{_quoted(replica)}"'
        self._lock = Lock()
        self._answers: dict[tuple[int, str], int] = {}
        self._seconds = _Histogram(_SECONDS)
        self._rows = _Histogram(_ROWS)

    def answered(self, status: int, kind: str, seconds: float) -> None:
        """A request for an inference was answered.

        Args:
            kind: the class of the error; empty if there was none.
        """
        with self._lock:
            key = status, kind
            self._answers[key] = self._answers.get(key, 0) + 1
            self._seconds.add(seconds)

    def ran(self, rows: int) -> None:
        """The model ran; a request that ran alone for want of rows counts as 0 of them."""
        with self._lock:
            self._rows.add(rows)

    def text(self) -> str:
        """All, as Prometheus reads it."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "# HELP byoc_requests_total Requests for inference that were answered."
        yield "# TYPE byoc_requests_total counter"
        for (status, kind), count in sorted(self._answers.items()):
            yield f'byoc_requests_total{{{self._labels},status="{status}",error="{kind}"}} {count}'
        yield "# HELP byoc_request_seconds From the request's arrival to its answer."
        yield "# TYPE byoc_request_seconds histogram"
        yield from self._seconds.lines("byoc_request_seconds", self._labels)
        yield "# HELP byoc_batch_rows Rows of a run of the model."
        yield "# TYPE byoc_batch_rows histogram"
        yield from self._rows.lines("byoc_batch_rows", self._labels)


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
