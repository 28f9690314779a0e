"""Runner of hostile models and texts: in which stage each ends, and if anything forbidden happened.

`python -m byoc_mlir_fuzz.hostile --cases 1000` runs cases in forks of one process, some in each
fork. A case may end in a result or in a typed error. Failures are a crash, no end in time, an
untyped error, a file opened outside of the case's folder and Python's, and another process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import onnx

import byoc_mlir
from byoc_mlir.backends import load_backend_module
from byoc_mlir.boundary import STRICT_VARIABLE
from byoc_mlir.compiler.build import Stages
from byoc_mlir.errors import ByocError, InternalError
from byoc_mlir.frontend import import_model
from byoc_mlir.frontend.files.mlir_file import write_mlir
from byoc_mlir.limits import Limits
from byoc_mlir_fuzz.hostile_models import ATTACKS, attacked
from byoc_mlir_fuzz.hostile_text import hostile_text
from byoc_mlir_fuzz.judge import small_inputs
from byoc_mlir_fuzz.mutate import mutated_bytes
from byoc_mlir_fuzz.random_model import random_graph

STAGES = ("read", "import", "partition", "codegen", "run")
_STAGE_OF = {
    **dict.fromkeys(("canonicalise", "partition", "prune"), "partition"),
    **dict.fromkeys(("generate", "lower", "link", "optimise", "program"), "codegen"),
}
KINDS = (*ATTACKS, "text", "store")
LIMITS = Limits(
    tensor_bytes=1 << 26,
    constant_bytes=1 << 25,
    arena_bytes=1 << 27,
    output_bytes=1 << 26,
    body_nodes=2000,
    nodes=5000,
    seconds=30,
)
_MEMORY = 8 << 30
_BATCH = 25


@dataclass
class Ended:
    """End of a case."""

    name: str
    stage: str
    """Stage that raised the error; `run` if none did before."""
    error: str = ""
    """Class of the error; empty for a result."""
    failure: str = ""
    """Reason why the end is none that is allowed."""


@dataclass
class Counts:
    """Ends of cases, by stage and error, and the failures."""

    stages: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    kinds: Counter[str] = field(default_factory=Counter[str])
    failures: list[Ended] = field(default_factory=list[Ended])

    def add(self, ended: Ended) -> None:
        """Counts a case."""
        self.stages[ended.stage] += 1
        self.errors[f"{ended.stage}: {ended.error or 'a result'}"] += 1
        self.kinds[ended.name.split("/")[0]] += 1
        if ended.failure:
            self.failures.append(ended)

    def lines(self) -> Iterator[str]:
        """Yields the counts as text."""
        yield f"{self.stages.total()} cases, {len(self.failures)} failures"
        yield from (f"  {stage:10} {self.stages[stage]:6}" for stage in STAGES)
        yield from (f"    {name:40} {count:6}" for name, count in sorted(self.errors.items()))
        yield "  " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        yield from (f"FAILED {one.name} in {one.stage}: {one.failure}" for one in self.failures)


def write_case(name: str, folder: Path) -> Path:
    """Writes the files of a case, `KIND/SEED/NUMBER`, to an empty folder; returns the model."""
    rng = Random(f"hostile {name}")
    kind = name.split("/")[0]
    _graph, model = random_graph(rng)
    _surroundings(folder)
    if kind in ATTACKS:
        path = folder / "model.onnx"
        path.write_bytes(attacked(rng, model, kind))
        return path
    path = folder / "model.mlir"
    write_mlir(import_model(model).module, path)
    store = path.with_suffix(".safetensors")
    if kind == "store" and store.is_file():
        store.write_bytes(mutated_bytes(rng, store.read_bytes()))
    else:
        path.write_text(hostile_text(rng, path.read_text()))
    return path


def _surroundings(folder: Path) -> None:
    """Writes files that a model may name, and some that it may not."""
    (folder.parent / "outside.bin").write_bytes(bytes(8192))
    (folder / "data.bin").write_bytes(bytes(range(256)) * 64)
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(folder.parent / "outside.bin")
    (folder / "folder" / "link").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe")


@dataclass
class _Watch:
    """Record of the stage that runs, and of forbidden events."""

    allowed: tuple[str, ...] = ()
    stage: str = "read"
    forbidden: list[str] = field(default_factory=list[str])

    def install(self) -> None:
        """Starts to record the stages and events of this process, until it ends."""
        sys.addaudithook(self._event)
        original: Callable[..., Any] = Stages.stage
        watch = self

        @contextmanager
        def stage(self: Stages, name: str) -> Generator[None]:
            watch.stage = _STAGE_OF.get(name, "import")
            with original(self, name):
                yield

        Stages.stage = stage

    def _event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork"):
            self.forbidden.append(f"{event} {arguments!r:.200}")
        elif event in ("open", "os.listdir", "os.remove", "ctypes.dlopen") and self.allowed:
            path = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes) else None
            if path is not None and not f"{os.path.abspath(path)}/".startswith(self.allowed):
                self.forbidden.append(f"{event} {path!r:.200}")


def _run_case(name: str, watch: _Watch) -> Ended:
    """Writes, compiles and runs a case."""
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "model"
        folder.mkdir()
        try:
            path = write_case(name, folder)
        except ByocError:  # no text, because the model is not imported
            return Ended(name, "import", "not written")
        watch.allowed, watch.stage = (str(folder), *_SYSTEM), "read"
        watch.forbidden.clear()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _compile_and_run(path, watch)
            ended = Ended(name, "run")
        except ByocError as error:
            ended = Ended(name, _stage_of(error, watch), type(error).__name__)
            if isinstance(error, InternalError) or type(error) is ByocError:
                ended.failure = f"{type(error).__name__}: {error}"[:500]
        except BaseException as error:
            ended = Ended(name, watch.stage, type(error).__name__)
            ended.failure = "".join(traceback.format_exception(error)[-2:])[-500:]
        if watch.forbidden:
            ended.failure = f"forbidden: {'; '.join(watch.forbidden[:3])}"
        watch.allowed = ()
    return ended


def _compile_and_run(path: Path, watch: _Watch) -> None:
    with byoc_mlir.compile(
        path, targets=(), threads=1, cache=False, limits=LIMITS, fallback="allow"
    ) as executable:
        feeds = small_inputs(executable)
        if feeds is not None:
            watch.stage = "run"
            executable.run(feeds)


def _stage_of(error: ByocError, watch: _Watch) -> str:
    if watch.stage == "read" and error.stage == "import":
        return "import"
    return watch.stage


_SYSTEM = (
    *(f"{os.path.abspath(path)}/" for path in sys.path if path),
    *([sys.pycache_prefix] if sys.pycache_prefix else []),
    *(sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), "/usr/lib", "/lib"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/self/maps", "/proc/self/status", "/sys/"),
    *("/dev/null", "/dev/shm", "/dev/urandom"),
)
"""Files that the interpreter and the package open for themselves."""


def _child(names: Sequence[str], write: int, modules: Sequence[str]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), 1)
        os.dup2(null.fileno(), 2)
    for module in modules:
        load_backend_module(module)
    watch = _Watch()
    watch.install()
    for name in names:
        os.write(write, f"{json.dumps({'name': name})}\n".encode())
        ended = _run_case(name, watch)
        os.write(write, f"{json.dumps(vars(ended))}\n".encode())


def run(names: Sequence[str], modules: Sequence[str] = (), seconds: float = 60) -> Iterator[Ended]:
    """Yields the ends of cases, in order.

    Args:
        names: names of cases, `KIND/SEED/NUMBER`.
        modules: modules to load in each fork, as `--backend` of the commands.
        seconds: the time after which a case counts as hung.
    """
    rest = list(names)
    while rest:
        ends = list(_batch(rest[:_BATCH], modules, seconds))
        rest = rest[len(ends) :]
        yield from ends


def _batch(names: Sequence[str], modules: Sequence[str], seconds: float) -> Iterator[Ended]:
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
        for line in _lines(stream.fileno(), seconds):
            message: Mapping[str, str] = json.loads(line)
            current = message["name"] if "stage" not in message else ""
            if "stage" in message:
                yield Ended(**message)
        ended = _wait(child)
    if ended == 1 and not current:
        raise RuntimeError("a fork of the runner ended before a case began")
    if current:
        why = "no end in time" if ended == -signal.SIGKILL else f"the process ended with {ended}"
        yield Ended(current, "run", "none", why)


def _lines(descriptor: int, seconds: float) -> Iterator[bytes]:
    """Yields lines until the end, or until none came in time."""
    rest = b""
    while select.select([descriptor], [], [], seconds)[0]:
        data = os.read(descriptor, 65_536)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from lines


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
    """Imports the compiler by a compilation, so that not each fork imports it."""
    model = onnx.parser.parse_model(_WARMING)
    with byoc_mlir.compile(model, targets=(), threads=1, fallback="allow") as executable:
        executable.report()


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
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one case")
    args = parser.parse_args(arguments)
    os.environ.setdefault(STRICT_VARIABLE, "on")
    os.environ["BYOC_CACHE"] = "off"
    _warm()
    counts = Counts()
    deadline = time.monotonic() + 60 * (args.minutes or 1e9)
    numbered = names_of(args.seed, args.start, args.kind or KINDS)
    names = args.case or [next(numbered) for _ in range(args.cases)]
    for first in range(0, len(names), _BATCH):
        for ended in run(names[first : first + _BATCH], args.backend, args.timeout):
            counts.add(ended)
            if ended.failure:
                _say(f"{ended.name} in {ended.stage}: {ended.failure}")
        if time.monotonic() > deadline:
            break
    _say("\n".join(counts.lines()))
    return 1 if counts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
