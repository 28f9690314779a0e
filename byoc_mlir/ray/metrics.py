"""Metrics of a server, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_LABELS = ("model", "replica")


class Metrics:
    """Counts of one server process.

    Args:
        model: the name of the model.
        replica: name of the process among others that serve the same model.
    """

    def __init__(self, model: str, replica: str):
        self._registry = CollectorRegistry()
        self._labels = (model, replica)
        self._answers = Counter(
            "byoc_requests",
            "Requests for inference that were answered.",
            (*_LABELS, "status", "error"),
            registry=self._registry,
        )
        self._seconds = self._histogram(
            "byoc_request_seconds", "From the request's arrival to its answer.", _SECONDS
        )
        self._rows = self._histogram("byoc_batch_rows", "Rows of a run of the model.", _ROWS)

    def answered(self, status: int, kind: str, seconds: float) -> None:
        """Counts an inference request that was answered.

        Args:
            kind: the class of the error; empty if there was none.
        """
        self._answers.labels(*self._labels, status, kind).inc()
        self._seconds.observe(seconds)

    def ran(self, rows: int) -> None:
        """Counts a run of the model; a request that ran alone because it has no rows counts as
        0."""
        self._rows.observe(rows)

    def text(self) -> bytes:
        """Returns all counts in Prometheus's format."""
        return generate_latest(self._registry)

    def _histogram(self, name: str, meaning: str, buckets: tuple[float, ...]) -> Histogram:
        whole = Histogram(name, meaning, _LABELS, buckets=buckets, registry=self._registry)
        return whole.labels(*self._labels)
