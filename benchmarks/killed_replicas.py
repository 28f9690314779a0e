"""Requests of `tritonclient` while replicas are killed: none may be lost or answered wrongly.

    python -m pip install '.[test,ray]' 'tritonclient[http]'
    python benchmarks/killed_replicas.py --seconds 600

16 clients send requests of 1 to 8 rows, as bytes, to two replicas of this package, then to two of
ONNX Runtime behind the same protocol. Every 20 s a replica gets SIGKILL. Memory is the resident one
of the proxy and of the replicas, at the first, the middle and the last kill.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from serving import CLIENTS, INPUTS, OnnxRuntime, onnxruntime_application, save_model

from byoc_mlir.ray import application, serving
from byoc_mlir.ray.deployment import prepare

REPLICAS = 2
_REPLICA, _PROXY = "ray::ServeReplica", "ray::ProxyActor"
"""Beginnings of the names of Ray's processes."""


@dataclass(frozen=True)
class Question:
    """Request, and the answer that it must get."""

    x: Any
    wanted: Any


@dataclass
class Killer:
    """Thread that kills a replica at each interval, and notes the memory before it."""

    every: float
    over: threading.Event = field(default_factory=threading.Event)
    killed: int = 0
    megabytes: list[float] = field(default_factory=list[float])

    def run(self) -> None:
        while not self.over.wait(self.every):
            replicas = list(_processes(_REPLICA))
            self.megabytes.append(sum(map(_megabytes, [*replicas, *_processes(_PROXY)])))
            if len(replicas) == REPLICAS:  # the one that was killed before has started again
                os.kill(replicas[self.killed % REPLICAS], signal.SIGKILL)
                self.killed += 1


def _processes(name: str) -> Iterator[int]:
    """Yields the descendants of this process whose names begin so."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_named = (folder / "cmdline").read_bytes().decode().startswith(name)
            if is_named and os.getpid() in _ancestors(int(folder.name)):
                yield int(folder.name)
        except OSError:
            continue  # it has ended


def _ancestors(process: int) -> Iterator[int]:
    while process > 1:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        yield process


def _megabytes(process: int) -> float:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * resource.getpagesize() / 1e6


def questions(path: str, count: int = 64) -> Sequence[Question]:
    """Returns requests with the answers of ONNX Runtime."""
    generator, model = np.random.default_rng(3), OnnxRuntime(path)
    sizes = [1 + number % 8 for number in range(count)]
    arrays = [generator.standard_normal((size, INPUTS)).astype(np.float32) for size in sizes]
    return [Question(x, model.run({"x": x})["y"]) for x in arrays]


def ask(url: str, end: float, asked: Sequence[Question], number: int) -> list[tuple[float, str]]:
    """Asks one question after the other until the end; returns seconds and outcomes."""
    triton: Any = import_module("tritonclient.http")
    refused: Any = import_module("tritonclient.utils").InferenceServerException
    client = triton.InferenceServerClient(url, connection_timeout=120, network_timeout=120)
    found: list[tuple[float, str]] = []
    while time.monotonic() < end:
        question = asked[(number + len(found)) % len(asked)]
        given = triton.InferInput("x", question.x.shape, "FP32")
        given.set_data_from_numpy(question.x)
        start = time.perf_counter()
        try:
            y = client.infer("mlp", [given]).as_numpy("y")
            is_right = np.allclose(y, question.wanted, rtol=1e-4, atol=1e-4)
            outcome = "right" if is_right else "wrong"
        except refused as error:
            outcome = f"lost ({error})"[:120]
        found.append((time.perf_counter() - start, outcome))
    client.close()
    return found


def measured(name: str, app: Any, asked: Sequence[Question], args: argparse.Namespace) -> str:
    """Returns a row of the table."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with serving(app, host="127.0.0.1", port=port, cores=REPLICAS):
        killer = Killer(args.every)
        thread = threading.Thread(target=killer.run)
        thread.start()
        start = time.monotonic()
        with ThreadPoolExecutor(CLIENTS) as pool:
            url, end = f"127.0.0.1:{port}", start + args.seconds
            parts = pool.map(partial(ask, url, end, asked), range(CLIENTS))
            answers = [one for part in parts for one in part]
        seconds = time.monotonic() - start
        killer.over.set()
        thread.join()
    times = 1e3 * np.array([took for took, _ in answers])
    late = [f"{value:.0f}" for value in np.percentile(times, [50, 99, 99.9, 100])]
    outcomes = Counter(outcome for _, outcome in answers)
    held = killer.megabytes
    memory = ", ".join(f"{one:.0f}" for one in (*held[:1], *held[len(held) // 2 :][:1], *held[-1:]))
    became = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common())
    numbers = (f"{seconds:.0f}", killer.killed, f"{len(answers) / seconds:.0f}", *late, memory)
    return f"| {' | '.join(map(str, (name, *numbers, became)))} |"


def main() -> None:
    """Measures both engines, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600, help="of each engine")
    parser.add_argument("--every", type=float, default=20, help="seconds between two kills")
    args = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    prepare()  # before Ray is imported
    columns = ("engine", "s", "killed", "requests/s", "median, ms", "p99", "p99.9", "max")
    print(f"| {' | '.join(columns)} | MB | outcomes |")
    print(f"| --- |{' ---: |' * 8} --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "mlp.onnx")
        save_model(Path(path))
        asked = questions(path)
        engines = {
            "`byoc_mlir`": lambda: application(path, name="mlp", replicas=REPLICAS),
            "ONNX Runtime": lambda: onnxruntime_application(path, REPLICAS),
        }
        for name, app in engines.items():
            print(measured(name, app(), asked, args), flush=True)


if __name__ == "__main__":
    main()
