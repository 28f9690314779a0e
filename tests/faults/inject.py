"""Faults while a model is compiled, stored, loaded and run, one at each of many places.

`python tests/faults/inject.py [--kind KIND] [--places N]` forks a process for each place. There it
works with a cache (`scenarios.py`), and a preloaded library makes one event fail. The answer has to
be right, or a typed error. Then another fork, without a fault, uses the same cache: its answer has
to be right, and no unfinished file may have the name of an entry.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from scenarios import FILES, Scenario, in_a_helper, models, scenarios

from byoc_mlir.compiler.cache import fingerprint
from byoc_mlir.errors import ByocError, InternalError

SOURCE = Path(__file__).with_name("faults.c")
_OF_FILES = ("full", "read-only", "vanish", "kill-writer", "other-version")
_LIBRARY_KINDS = (*_OF_FILES, "memory", "interrupt", "terminate", "fork", "kill-helper")
"""Kinds of faults in the order of the library's numbers, from 1 on; the first ones fail at an
operation on a file, the others at an allocation."""
_IN_HELPER = {"kill-helper": "kill-helper", "memory-of-helper": "memory"}
"""Faults in the process that compiles beside the calls, by the library's kinds."""
KINDS = (*_LIBRARY_KINDS, "memory-of-helper")

_LOOKS = 2400
"""Looks at a fork, 0.05 s apart, after which it hangs; they do not pass while this process is
stopped, as seconds do."""
_ENOUGH_FOR_ONE = str(20_000)
"""Bytes of a cache in which two versions delete each other's entries."""
_FORKED = "BYOC_FAULTS"


@dataclass
class Counts:
    """Outcomes of one kind of fault."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])
    events: int = 0


def _library(folder: Path) -> Path:
    path = folder / "faults.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(path), str(SOURCE)]
    subprocess.run(command, check=True)
    return path


def _in_fork(
    body: Callable[[], str],
    when_stopped: Callable[[], None] | None = None,
    most_looks: int = _LOOKS,
) -> str:
    """Returns the text of a fork's outcome, or how the fork ended.

    Args:
        body: what the fork does.
        when_stopped: called when the fork has stopped; afterwards the fork goes on.
        most_looks: looks at the fork after which it hangs.
    """
    read, write = os.pipe()
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            try:
                os.setpgid(0, 0)  # its own forks end with it
                os.dup2(errors.fileno(), 2)
                faulthandler.enable(errors)
                text = body()
                os.write(write, f"{text}\n".encode()[:2000])
            finally:
                os._exit(0)
        os.close(write)
        said, status = _followed(child, read, when_stopped, most_looks)
        os.close(read)
        errors.seek(0)
        complaints = errors.read().decode(errors="replace")
        place = _ended_in(complaints)
    if said == {"HUNG"}:
        return f"HUNG in {' | '.join(complaints.splitlines())[:1500]}"
    if said:
        return " and ".join(sorted(said))
    if status in (-signal.SIGABRT, -signal.SIGSEGV):
        return f"{signal.Signals(-status).name} in {place}"
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit {status}"


def _followed(
    child: int, pipe: int, when_stopped: Callable[[], None] | None, most_looks: int
) -> tuple[set[str], int]:
    """Returns the lines that a child and its forks write, and the child's status."""
    text, looks = b"", 0
    while True:
        if select.select([pipe], [], [], 0.05)[0]:
            data = os.read(pipe, 4096)
            if not data:
                break
            text += data
        elif (looks := looks + 1) == most_looks:
            os.killpg(child, signal.SIGABRT)  # `faulthandler` writes the stacks
            time.sleep(1.0)
            os.killpg(child, signal.SIGKILL)
            text = b"HUNG"
            break
        elif when_stopped is not None and _has_stopped(child):
            when_stopped()
            when_stopped = None
            os.kill(child, signal.SIGCONT)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return set(text.decode().split("\n")) - {""}, status


def _has_stopped(child: int) -> bool:
    """True if a child has stopped; one that has ended stays to be waited for."""
    state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"


_LLVM = ("llvmlite", "llvm_ir")
"""Folders whose functions call LLVM."""


def _ended_in(text: str) -> str:
    """Returns the file of the Python function that called what ended the process."""
    file = re.search(r'most recent call first\):\n  File "([^"]*)"', text)
    if file is None:
        return "an unknown place"
    parts = Path(file[1]).parts
    return "LLVM" if set(parts) & set(_LLVM) else "/".join(parts[-2:])


class Injector:
    """Runs a scenario with faults, and judges the outcomes."""

    def __init__(self, library: str, scenario: Scenario, folder: Path):
        self._faults: Any = ctypes.CDLL(library)
        self._faults.fault_arm.argtypes = [ctypes.c_int, ctypes.c_long] + [ctypes.c_char_p] * 2
        self._faults.fault_count.restype = self._faults.fault_seen.restype = ctypes.c_long
        self._scenario, self._folder = scenario, folder
        self._cache, self._gone = folder / "cache", folder / "gone"
        self._count_file = folder.with_name("count")
        self._clear()
        self._wanted = scenario(self._cache)  # imports all that the forks need

    def count(self, kind: str) -> int:
        """Returns the number of events of a kind in a run without a fault."""
        self._clear()
        count = _in_fork(lambda: str(self._attempt(kind, 0)[1]))
        return int(self._count_file.read_text() if kind in _IN_HELPER else count)

    def inject(self, kind: str, at: int) -> tuple[str, str]:
        """Returns the outcome of a run with a fault, and what is wrong, or ""."""
        self._clear()
        others = list[str]()
        outcome = _in_fork(
            lambda: self._faulty(kind, at), lambda: others.append(_in_fork(self._other_version))
        )
        wrong = "" if self._is_allowed(kind, outcome) else outcome
        if kind == "other-version" and others != ["right"]:
            wrong += f"; the other version: {others}"
        if self._gone.exists():
            shutil.rmtree(self._gone)
        after = _in_fork(lambda: self._attempt("", 0)[0])
        if after != "right":
            wrong += f"; the next run: {after}"
        return outcome, wrong

    def _faulty(self, kind: str, at: int) -> str:
        """Returns the outcome of a run with a fault, and that of its fork if it differs."""
        if kind != "fork":
            return self._attempt(kind, at)[0]
        outcomes = set[str]()
        is_over = threading.Event()
        thread = threading.Thread(target=self._fork_at, args=(at, is_over, outcomes))
        thread.start()
        outcomes.add(self._attempt(kind, 0)[0])
        is_over.set()
        thread.join()
        return " and ".join(sorted(outcomes))

    def _fork_at(self, at: int, is_over: threading.Event, outcomes: set[str]) -> None:
        """Runs the scenario in a fork at an allocation of another thread, whatever that does."""
        while self._faults.fault_seen() < at and not is_over.is_set():
            time.sleep(1e-4)
        outcomes.add(_in_fork(lambda: self._attempt("", 0)[0], most_looks=_LOOKS // 2))

    def _other_version(self) -> str:
        """Runs the scenario as another version of this package would."""
        fingerprint.__dict__["_own_stamps"] = lambda: [["another", "version"]]
        fingerprint.__dict__["_software"].cache_clear()
        return self._attempt("", 0)[0]

    def _arm(self, kind: str, at: int) -> None:
        os.environ["BYOC_CACHE_BYTES"] = _ENOUGH_FOR_ONE if kind == "other-version" else ""
        if kind in _IN_HELPER:
            os.environ["BYOC_HELPER_COUNT"] = str(self._count_file)
            number = _LIBRARY_KINDS.index(_IN_HELPER[kind]) + 1
            os.environ["BYOC_HELPER_FAULT"] = f"{number} {at}"
        elif kind:
            paths = str(self._cache).encode(), str(self._gone).encode()
            self._faults.fault_arm(_LIBRARY_KINDS.index(kind) + 1, at, *paths)

    def _attempt(self, kind: str, at: int) -> tuple[str, int]:
        """Returns the outcome of a run with a fault, and the number of events; "" is no fault."""
        self._arm(kind, at)
        count = 0
        try:
            try:
                answers = self._scenario(self._cache)
            finally:
                count = self._faults.fault_count()
            same = all(map(_is_same, answers, self._wanted))
            return "right" if same else "WRONG VALUE", count
        except InternalError as error:
            return f"UNTYPED {error.__cause__!r}"[:300], count
        except (ByocError, KeyboardInterrupt) as error:
            return type(error).__name__, count
        except BaseException as error:
            return f"UNTYPED {error!r}"[:300], count

    def _is_allowed(self, kind: str, outcome: str) -> bool:
        if kind in ("kill-writer", "terminate") and outcome.startswith("killed by SIG"):
            return True
        if kind == "memory" and outcome.endswith(" in LLVM"):  # it ends the process
            return True
        if kind == "interrupt" and outcome == "KeyboardInterrupt":
            return True
        names = {"right", *(one.__name__ for one in _typed(ByocError))}
        if kind in _OF_FILES and outcome == "ByocError":  # the folder that was given cannot be made
            return True
        return outcome in names - {"InternalError", "ByocError"}

    def _clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        (self._folder / FILES).mkdir(parents=True)


def _typed(kind: type[ByocError]) -> Iterator[type[ByocError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _typed(one)


def _is_same(one: Any, other: Any) -> bool:
    """True if answers are equal, except for the rounding of the interpreter tier."""
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-6, atol=1e-6)


def _shares(events: Mapping[str, int], most: int) -> Mapping[str, int]:
    """Returns the number of places in each scenario, `most` together if there are as many."""
    shares = dict[str, int]()
    for count, name in sorted((count, name) for name, count in events.items()):
        open_ = len(events) - len(shares)
        shares[name] = min(count, -(-(most - sum(shares.values())) // open_))
    return shares


def _places(count: int, most: int) -> Sequence[int]:
    """Returns up to `most` places among `count` events, evenly spread."""
    if count <= most:
        return range(1, count + 1)
    return [1 + number * count // most for number in range(most)]


def main() -> int:
    """Runs scenarios with faults, and prints the outcomes; returns 1 if any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--scenario", action="append", help="default: all")
    parser.add_argument("--places", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1e9, help="of each kind, at most")
    args = parser.parse_args()
    if _FORKED not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            library = str(_library(Path(folder)))
            variables = {**os.environ, "LD_PRELOAD": library, _FORKED: library}
            return subprocess.run([sys.executable, *sys.argv], env=variables).returncode
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.kind or KINDS:
            injectors = _injectors(kind, Path(folder), args.scenario)
            counts = _injected(kind, injectors, args.places, time.monotonic() + args.seconds)
            listed = ", ".join(f"{name} {count}" for name, count in counts.outcomes.most_common())
            head = f"{kind}, {counts.outcomes.total()} of {counts.events} places: {listed}"
            sys.stdout.write("\n".join([head, *counts.failures, ""]))
            sys.stdout.flush()
            failed |= bool(counts.failures)
    return 1 if failed else 0


def _injectors(kind: str, folder: Path, names: Sequence[str] | None) -> dict[str, Injector]:
    """Returns the injectors of the scenarios of a kind: with a helper, or else in one process."""
    path = folder / "model.onnx"
    onnx.save(models()["symbolic"], path)
    chosen: Mapping[str, Scenario] = (
        {"helper": partial(in_a_helper, path)} if kind in _IN_HELPER else scenarios(folder)
    )
    library = os.environ[_FORKED]
    return {
        name: Injector(library, scenario, folder / name)
        for name, scenario in chosen.items()
        if name in (names or chosen)
    }


def _injected(kind: str, injectors: Mapping[str, Injector], most: int, end: float) -> Counts:
    """Runs scenarios with a kind of fault at about `most` places, or until the end."""
    counts = Counts()
    events = {name: injector.count(kind) for name, injector in injectors.items()}
    counts.events = sum(events.values())
    shares = _shares(events, most)
    for name, injector in injectors.items():
        for at in _places(events[name], shares[name]):
            if time.monotonic() > end:
                break
            outcome, wrong = injector.inject(kind, at)
            counts.outcomes[outcome] += 1
            if wrong:
                counts.failures.append(f"{kind} {name} {at}/{events[name]}: {wrong}")
    return counts


if __name__ == "__main__":
    sys.exit(main())
