"""Dump of the IR after each pass to files.

`compile(dump_ir="FOLDER")` names the folder; see docs/debugging.md.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from io import StringIO
from pathlib import Path
from typing import Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from byoc_mlir.disabled import is_disabled
from byoc_mlir.names import printable

SUMMARY = "passes.txt"


class IrDump:
    """A folder for the IR after each pass that changed something, numbered from 1.

    `passes.txt` lists all passes: number, milliseconds, ops before and after, name.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._number = 0
        self._written = ""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SUMMARY).write_text("number  ms  ops before  ops after  pass\n")

    def apply(self, pass_: ModulePass, context: Context, module: ModuleOp) -> None:
        """Applies a pass, and writes the changed module; if the pass fails, writes its input."""
        before, ops_before = located_text(module), _ops(module)
        start = time.perf_counter()
        try:
            pass_.apply(context, module)
        except Exception as error:
            self._note_failure(pass_, before, error)
            raise
        milliseconds = (time.perf_counter() - start) * 1e3
        number = self._next_number()
        after, ops_after = located_text(module), _ops(module)
        if after not in (before, self._written):  # a pass of passes leaves what its last one did
            self.write(f"{number:03}-{pass_.name}.mlir", after)
            self._written = after
        counts = f"{ops_before.total()} {ops_after.total()}"
        kinds = [f"{name} {count:+}" for name, count in sorted(_changes(ops_before, ops_after))]
        changed = f": {', '.join(kinds)}" if kinds else "" if after != before else ": nothing"
        self._note(f"{number:03} {milliseconds:.1f} {counts} {pass_.name}{changed}")

    def _note_failure(self, pass_: ModulePass, given: str, error: Exception) -> None:
        number = self._next_number()
        self.write(f"{number:03}-{pass_.name}.failed.mlir", given)
        self._note(
            f"{number:03} {pass_.name} failed: {type(error).__name__}: {printable(str(error))}"
        )

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _note(self, line: str) -> None:
        with (self._folder / SUMMARY).open("a") as summary:
            summary.write(f"{line}\n")

    def write(self, name: str, text: str) -> None:
        """Writes a file."""
        (self._folder / name).write_text(text)


class PassRunner(Protocol):
    """Runner that applies passes and observes their effects."""

    def apply(self, pass_: ModulePass, context: Context, module: ModuleOp) -> None:
        """Applies a pass."""

    def write(self, name: str, text: str) -> None:
        """Receives a text of a part of the compiler, with its name."""


_current: ContextVar[PassRunner | None] = ContextVar("pass_runner", default=None)


@contextmanager
def dumping(folder: Path | None) -> Generator[None]:
    """Dumps the IR of compilations in the context to a folder; `None` dumps nothing."""
    with applying_with(None if folder is None else IrDump(folder)):
        yield


@contextmanager
def applying_with(runner: PassRunner | None) -> Generator[None]:
    """Applies the passes of compilations in the context with a runner; `None` applies them
    directly.
    """
    token = _current.set(runner)
    try:
        yield
    finally:
        _current.reset(token)


def apply_pass(pass_: ModulePass, context: Context, module: ModuleOp) -> None:
    """Applies a pass, unless it is disabled, and writes its changes if IR is dumped."""
    if is_disabled(pass_.name):
        return
    dump = _current.get()
    if dump is None:
        pass_.apply(context, module)
    else:
        dump.apply(pass_, context, module)


def dump_text(name: str, text: Callable[[], str]) -> None:
    """Writes a file of this name if IR is dumped."""
    dump = _current.get()
    if dump is not None:
        dump.write(name, text())


def located_text(module: ModuleOp) -> str:
    """Returns the IR, each op with the location of its ONNX nodes: `loc("conv1")`."""
    text = StringIO()
    Printer(text, print_debuginfo=True).print_op(module)
    return text.getvalue().replace(_NO_LOCATION, "")


_NO_LOCATION = " loc(unknown)"


def _ops(module: ModuleOp) -> Counter[str]:
    return Counter(op.name for op in module.walk())


def _changes(before: Counter[str], after: Counter[str]) -> list[tuple[str, int]]:
    """Returns the change in the number of each kind of op."""
    differences = {name: after[name] - before[name] for name in before | after}
    return [(name, count) for name, count in differences.items() if count]
