"""Streams of requests with changing sizes, which are compiled while earlier ones are answered.

    python benchmarks/streams.py                                  all streams, 24 sizes each
    python benchmarks/streams.py --quick --threads 1              4 sizes
    python benchmarks/streams.py --streams encoder decoder --engines byoc,onnxruntime

Every engine answers a stream in a fresh process. The first process of `byoc` finds an empty cache,
the second one the cache of the first.

- `whole`: time from the model's file to the last answer, without imports of the engine.
- `first`: time of the first answer of a further size.
- `repeated`: time of an answer of an earlier size.
- `steady`: time of repeated calls at one size, when nothing is compiled any more.
- `beside`: processor seconds and peak memory of the process that compiles in the background.

Ratios are to the faster or smaller of the peers. Errors are against ONNX Runtime.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from engines import ENGINES, PEERS
from measure import Failure, environment, last_error
from report import geometric_mean, rounded, table_row
from run import engine_names, machine
from stream_models import STREAMS, StreamFiles, write_stream
from stream_worker import CLOCKS, Answered

from byoc_mlir.testing.reference import largest_relative_error

_QUICK_COUNT = 4
_REFERENCE = "onnxruntime"


@dataclass(frozen=True)
class Result:
    """Result of one process for one stream."""

    stream: str
    threads: int
    engine: str
    """Engine, with the number of the process for engines that have a cache: `byoc, 2nd`."""
    order: tuple[int, ...]
    answered: Answered
    error: float
    """Largest error of the float outputs over the reference's largest value."""

    @property
    def whole(self) -> float:
        """Returns the seconds of the whole stream, compilation included."""
        return self.answered.compile_seconds + sum(self.answered.milliseconds) / 1e3

    @property
    def first(self) -> float:
        """Returns the median milliseconds of the first answer of a further size."""
        return median(self._of(new=True)[1:] or self._of(new=True))

    @property
    def repeated(self) -> float:
        """Returns the median milliseconds of an answer of a repeated size."""
        return median(self._of(new=False))

    @property
    def steady(self) -> float:
        """Returns the milliseconds of repeated calls at one size, the geometric mean over several
        sizes.
        """
        return geometric_mean(self.answered.steady_milliseconds)

    @property
    def megabytes(self) -> float:
        """Returns the peak memory of the process in megabytes."""
        return self.answered.peak_megabytes

    def _of(self, *, new: bool) -> list[float]:
        seen: set[int] = set()
        found: list[float] = []
        for request, milliseconds in zip(self.order, self.answered.milliseconds, strict=True):
            if (request not in seen) is new:
                found.append(milliseconds)
            seen.add(request)
        return found


_COLUMNS = ("whole", "first", "repeated", "steady", "megabytes")


def main() -> int:
    """Runs the benchmark; returns 0 if every engine returned outputs."""
    arguments = _parser().parse_args()
    count = _QUICK_COUNT if arguments.quick else arguments.sizes
    results: list[Result | Failure] = []
    for name in arguments.streams:
        with tempfile.TemporaryDirectory(prefix="byoc-streams-") as folder:
            files = write_stream(name, count, Path(folder))
            for threads in arguments.threads:
                for result in _measured(
                    files, arguments.engines, threads, arguments.clock, Path(folder)
                ):
                    _show_progress(result)
                    results.append(result)
    print(table(results))
    if arguments.json:
        document = {"machine": machine(), "results": [asdict(result) for result in results]}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")
    return int(any(isinstance(result, Failure) for result in results))


def table(results: Sequence[Result | Failure]) -> str:
    """Returns a table with a row for each process, with ratios to the best of the peers on that
    stream.
    """
    head = ["stream", "threads", "engine", "whole s", "first ms", "repeated ms", "steady ms", "MB"]
    head += ["beside", "error"]
    lines = [table_row(head), table_row(["---", *["---:"] * (len(head) - 1)])]
    for result in results:
        place = [result.stream if isinstance(result, Result) else result.model]
        place += [str(result.threads), result.engine]
        if isinstance(result, Failure):
            lines.append(table_row([*place, *["failed"] * len(_COLUMNS), "-", "-"]))
            continue
        peers = [
            other
            for other in results
            if isinstance(other, Result) and other.engine in PEERS
            if (other.stream, other.threads) == (result.stream, result.threads)
        ]
        values = [_compared(result, peers, column) for column in _COLUMNS]
        lines.append(table_row([*place, *values, _beside(result), f"{result.error:.0e}"]))
    return "\n".join(lines)


def _beside(result: Result) -> str:
    """Returns the time and memory of the processes that compiled for the measured one."""
    answered = result.answered
    if not answered.beside_seconds:
        return "-"
    return f"{rounded(answered.beside_seconds)} s, {rounded(answered.beside_megabytes)} MB"


def _compared(result: Result, peers: Sequence[Result], column: str) -> str:
    """Returns the value of a column, with its ratio to the best peer unless the engine is a
    peer."""
    value: float = getattr(result, column)
    if result.engine in PEERS or not peers:
        return rounded(value)
    return f"{rounded(value)} ({value / min(getattr(peer, column) for peer in peers):.2f})"


def _measured(
    files: StreamFiles, engines: Sequence[str], threads: int, clock: str, folder: Path
) -> Iterator[Result | Failure]:
    """Yields the results of one stream; the reference runs first."""
    ordered = sorted(engines, key=lambda engine: engine != _REFERENCE)
    reference = folder / "reference"
    if not reference.exists():
        _answered(files, _REFERENCE, 1, clock, reference, None)
    for engine in ordered:
        has_cache = engine.startswith("byoc")
        names = [f"{engine}, 1st", f"{engine}, 2nd"] if has_cache else [engine]
        for name in names:
            outputs = folder / f"{name}-{threads}"
            cache = folder / f"cache-{engine}-{threads}" if has_cache else None
            try:
                answered = _answered(files, engine, threads, clock, outputs, cache)
            except subprocess.CalledProcessError:
                message = last_error(outputs.with_suffix(".log"))
                yield Failure(name, files.name, threads, message)
                continue
            error = _largest_error(outputs, reference)
            yield Result(files.name, threads, name, files.order, answered, error)


def _answered(
    files: StreamFiles, engine: str, threads: int, clock: str, outputs: Path, cache: Path | None
) -> Answered:
    """Runs one process that answers a stream."""
    outputs.mkdir()
    order = ",".join(map(str, files.order))
    script = Path(__file__).with_name("stream_worker.py")
    arguments = [engine, files.model, threads, clock, outputs, order, *files.inputs]
    variables = environment(BYOC_CACHE_DIR=str(cache)) if cache else environment()
    with outputs.with_suffix(".log").open("w") as log:
        done = subprocess.run(
            [sys.executable, script, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            check=True,
            env=variables,
        )
    answered: dict[str, Any] = json.loads(done.stdout)
    return Answered(**answered)


def _largest_error(outputs: Path, reference: Path) -> float:
    return max(_error(path, reference / path.name) for path in sorted(outputs.iterdir()))


def _error(found: Path, expected: Path) -> float:
    with np.load(found) as got, np.load(expected) as want:
        floats = [name for name in want.files if np.issubdtype(want[name].dtype, np.floating)]
        return max(largest_relative_error(got[name], want[name]) for name in floats)


def _show_progress(result: Result | Failure) -> None:
    outcome = (
        f"{result.whole:.2f} s, error {result.error:.1e}"
        if isinstance(result, Result)
        else f"failed: {result.message}"
    )
    name = result.stream if isinstance(result, Result) else result.model
    print(f"{name}, {result.threads} threads, {result.engine}: {outcome}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=tuple(STREAMS))
    parser.add_argument(
        "--engines",
        type=engine_names,
        default=("byoc", *PEERS),
        metavar="A,B,...",
        help=f"any of {', '.join(ENGINES)}",
    )
    parser.add_argument("--threads", nargs="+", type=int, default=(1, 2))
    parser.add_argument("--sizes", type=int, default=24, help="different sizes of each stream")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK_COUNT} different sizes")
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        default="wall",
        help="cpu: the processor's time, of all threads, for a machine that others use as well",
    )
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
