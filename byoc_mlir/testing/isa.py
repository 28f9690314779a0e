"""Tests at every instruction set, on one machine."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

from byoc_mlir.runtime.system.cpu import LEVELS, MAX_ISA, Cpu, max_level, missing_by_level
from byoc_mlir.testing.forked import run_forked

_CALL = """
import importlib, sys
_, folder, module, function, *arguments = sys.argv
sys.path.insert(0, folder)
getattr(importlib.import_module(module), function)(*arguments)
"""


def distinct_levels(*levels: str) -> list[str]:
    """Returns the first level of each group of levels at which a process of this machine behaves
    the same.
    """
    first: dict[int, str] = {}
    for level in levels:
        first.setdefault(_reached(level), level)
    return list(first.values())


def call_at(
    level: str, function: Callable[..., object], *arguments: str, seconds: float = 300
) -> str:
    """Calls a function in a new process that is limited to a level of `isa.LEVELS`.

    Levels above the machine's, or above this process's, are lowered to that.

    Args:
        function: a function at the top of a module whose file can be imported by its name.
        arguments: its arguments.
        seconds: the maximum time of the call.

    Returns:
        The process's output.

    Raises:
        AssertionError: the function raised an error, which is in the message, or the process died.
    """
    path = Path(inspect.getfile(function))
    return run_at(
        level, _CALL, str(path.parent), path.stem, function.__name__, *arguments, seconds=seconds
    )


def run_at(level: str, code: str, *arguments: str, seconds: float = 300) -> str:
    """Runs a script in a new process that is limited to a level; see `call_at`."""
    return run_forked(code, *arguments, environment={MAX_ISA: _lowered(level)}, seconds=seconds)


def _reached(level: str) -> int:
    """Returns the number of levels, from the lowest on, that the machine supports up to `level`."""
    missing = missing_by_level(Cpu.machine().features)
    allowed = LEVELS[: LEVELS.index(_lowered(level)) + 1]
    return sum(1 for _ in takewhile(lambda name: not missing[name], allowed))


def _lowered(level: str) -> str:
    """Returns a level, or the level of this process if that is lower."""
    return min(level, max_level() or level, key=LEVELS.index)
