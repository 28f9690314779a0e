"""Programs that an executable has now, by kind."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.plan import Leaf
from byoc_mlir.runtime.program import Program


def generic_programs(executable: Executable) -> Sequence[Program]:
    """Returns the programs that take sizes, of a model that is not split into segments."""
    return [one for one in _programs(executable) if one.sizes is not None]


def fixed_programs(executable: Executable) -> Sequence[Program]:
    """Returns the programs for one set of shapes, of a model that is not split into segments."""
    return [one for one in _programs(executable) if one.sizes is None]


def is_symbolic(executable: Executable) -> bool:
    """True if the model is not split into segments and has dynamic shapes."""
    is_leaf = isinstance(executable.plan, Leaf)
    return is_leaf and not all(info.is_static for info in executable.inputs)


def _programs(executable: Executable) -> Sequence[Program]:
    plan = executable.plan
    assert isinstance(plan, Leaf)
    return plan.programs
