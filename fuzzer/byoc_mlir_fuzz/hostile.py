"""Runner of hostile models, texts and files: in which stage each ends, and what fails.

`python -m byoc_mlir_fuzz.hostile --cases 1000` runs cases in forks of one process, many in each
fork. A case may end in a result or in a typed error. It fails if it kills its process or does not
end, and as `hostile_case.py` says.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import onnx

import byoc_mlir
from byoc_mlir.backends import load_backend_module
from byoc_mlir.boundary import STRICT_VARIABLE
from byoc_mlir_fuzz.hostile_case import KINDS, SECONDS, STAGES, TARGETS, Ended, Watch, run_case

_MEMORY = 8 << 30
_BATCH = 250
"""Cases of a fork."""
_LOOK_SECONDS = 5.0
"""Seconds between two looks at a fork that is silent."""
_WAITING = 10
"""Looks for each one that a case needs: other processes run, too. A look ends while this process is
stopped, so looks are counted, and not seconds."""


@dataclass
class Counts:
    """Ends of cases, by stage and error, and the failures."""

    stages: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    kinds: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Stages of the cases of each kind."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds of the processor, by kind."""
    failures: list[Ended] = field(default_factory=list[Ended])

    def add(self, ended: Ended) -> None:
        """Counts a case."""
        self.stages[ended.stage] += 1
        self.errors[f"{ended.stage}: {ended.error or 'a result'}"] += 1
        kind = ended.name.split("/")[0]
        self.kinds.setdefault(kind, Counter())[ended.stage] += 1
        self.seconds[kind] = self.seconds.get(kind, 0.0) + ended.seconds
        if ended.failure:
            self.failures.append(ended)

    def lines(self) -> Iterator[str]:
        """Yields the counts as text."""
        yield f"{self.stages.total()} cases, {len(self.failures)} failures"
        yield from (f"  {stage:10} {self.stages[stage]:6}" for stage in STAGES)
        yield from (f"    {name:40} {count:6}" for name, count in sorted(self.errors.items()))
        for kind, stages in sorted(self.kinds.items()):
            each = " ".join(f"{stages[stage]:6}" for stage in STAGES)
            yield f"    {kind:10} {stages.total():6} in {self.seconds[kind]:5.0f} s {each}"
        yield from (f"FAILED {one.name} in {one.stage}: {one.failure}" for one in self.failures)


def _child(names: Sequence[str], write: int, modules: Sequence[str]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), 1)
        os.dup2(null.fileno(), 2)
    for module in modules:
        load_backend_module(module)
    watch = Watch()
    watch.install()
    for name in names:
        os.write(write, f"{json.dumps({'name': name})}\n".encode())
        ended = run_case(name, watch)
        os.write(write, f"{json.dumps(vars(ended))}\n".encode())


def run(names: Sequence[str], modules: Sequence[str] = ()) -> Iterator[Ended]:
    """Yields the ends of cases, in order.

    Args:
        names: names of cases, `KIND/SEED/NUMBER`.
        modules: modules to load in each fork, as `--backend` of the commands.
    """
    rest = list(names)
    while rest:
        ends = list(_batch(rest[:_BATCH], modules))
        rest = rest[len(ends) :]
        yield from ends


def _batch(names: Sequence[str], modules: Sequence[str]) -> Iterator[Ended]:
    """Runs cases in a fork until one kills it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            _child(names, write, modules)
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    current = ""
    with open(read, "rb", buffering=0) as stream:
        for line in _lines(stream.fileno(), child):
            message: Mapping[str, Any] = json.loads(line)
            current = message["name"] if "stage" not in message else ""
            if "stage" in message:
                yield Ended(**message)
        ended = _wait(child)
    if ended == 1 and not current:
        raise RuntimeError("a fork of the runner ended before a case began")
    if current:
        why = "no end in time" if ended == -signal.SIGKILL else f"the process ended with {ended}"
        yield Ended(current, "run", "none", why)


def _lines(descriptor: int, child: int) -> Iterator[bytes]:
    """Yields the lines that a child writes, until its end or until a case takes too long."""
    rest = b""
    while _answers(descriptor, child):
        data = os.read(descriptor, 65_536)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from lines


def _answers(descriptor: int, child: int) -> bool:
    """True if a child writes before it has used up the time of a case, or before it waits for
    something that never comes.
    """
    most = _seconds_of(child) + 2 * SECONDS
    for _ in range(int(_WAITING * SECONDS / _LOOK_SECONDS)):
        if select.select([descriptor], [], [], _LOOK_SECONDS)[0]:
            return True
        if _seconds_of(child) > most:
            break
    return False


def _seconds_of(child: int) -> float:
    """Returns the seconds of the processor that a child has used."""
    with open(f"/proc/{child}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait(child: int) -> int:
    """Returns the exit status of a child, which is killed if it still runs."""
    for _ in range(20):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def names_of(seed: int, start: int = 0, kinds: Sequence[str] = KINDS) -> Iterator[str]:
    """Yields names of cases without end, one of each kind after the other."""
    number = start
    while True:
        yield f"{kinds[number % len(kinds)]}/{seed}/{number}"
        number += 1


def _warm() -> None:
    """Imports the package and loads the libraries of backends, so that not each fork does."""
    for package in ("compiler", "frontend", "interpreter", "lowering", "numpy_ops", "transforms"):
        folder = Path(byoc_mlir.__file__).with_name(package)
        for module in walk_packages([str(folder)], f"byoc_mlir.{package}."):
            import_module(module.name)
    model = onnx.parser.parse_model(_WARMING)
    for targets in TARGETS:
        with byoc_mlir.compile(model, targets, threads=1, fallback="allow") as executable:
            executable.report()
    gc.collect()
    gc.freeze()  # so that forks share its memory


_WARMING = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,2,8,8] x, float[3,2,3,3] w) => (float[1,3,6,6] y) {
    c = Conv (x, w) s = Softmax <axis = 1> (c) y = Relu (s)
}"""


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs cases and prints the counts; returns 1 if any failed."""
    parser = argparse.ArgumentParser("byoc_mlir_fuzz.hostile", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--minutes", type=float, help="how long to begin new cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--case", action="append", metavar="KIND/SEED/NUMBER", help="these alone")
    parser.add_argument("--kind", action="append", choices=KINDS, help="these alone")
    parser.add_argument("--backend", action="append", default=[], metavar="FILE.py")
    args = parser.parse_args(arguments)
    os.environ.setdefault(STRICT_VARIABLE, "on")
    os.environ["BYOC_CACHE"] = "off"
    _warm()
    counts = Counts()
    deadline = time.monotonic() + 60 * (args.minutes or 1e9)
    numbered = names_of(args.seed, args.start, args.kind or KINDS)
    names = args.case or [next(numbered) for _ in range(args.cases)]
    for first in range(0, len(names), _BATCH):
        for ended in run(names[first : first + _BATCH], args.backend):
            counts.add(ended)
            if ended.failure:
                _say(f"{ended.name} in {ended.stage}: {ended.failure}")
        if time.monotonic() > deadline:
            break
    _say("\n".join(counts.lines()))
    return 1 if counts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
