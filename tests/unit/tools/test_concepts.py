"""Counts of concepts, on a package that is written for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from concepts import (
    bindings_of,
    counted,
    executables_of,
    memos_of,
    modules_of,
    programs_of,
    repeated_classes,
    repeated_meanings,
    specialisers_of,
)

_SOURCES = {
    "runtime/executable.py": '''
"""Text is no code."""
from abc import ABC, abstractmethod
from dataclasses import dataclass

class Executable(ABC):
    @abstractmethod
    def run(self): ...

class Fixed(Executable):
    def run(self):  # a comment is none, either
        return 1

class Half(Executable):
    pass

@dataclass(frozen=True)
class SmallProgram:
    size: int
''',
    "compiler/make.py": """
from functools import cache

class Maker:
    def __init__(self):
        self._known = {}
        self._other = {}

    def program(self, shapes) -> Program:
        if shapes not in self._known:
            self._known[shapes] = Program(shapes)
        return self._known[shapes]

    def note(self, key):
        self._other[key] = 1

class Part: ...

@cache
def calibration(): ...
""",
    "interpreter/ops.py": """
import numpy as np
class Part: ...
class ConvOp: ...
TABLE = {"Add": np.add, "Cos": np.cos, "Neg": "negative"}
""",
    "dialects/evaluate.py": "TABLE = {}\n",
    "dialects/evaluate/elementwise.py": """
import numpy as np
class ConvOp: ...
TABLE = {relay.AddOp: np.add, relay.NegOp: np.negative}
""",
    "onednn/api.py": "import ctypes\n"
    + "\n".join(f"library.dnnl_{name}_create()" for name in "abcdefgh"),
    "interpreter/names.py": 'NAMES = ["dnnl_memory_create"]\n',
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    for name, text in _SOURCES.items():
        path = folder / "byoc_mlir" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_what_is_counted_is_as_defined(root: Path) -> None:
    modules = modules_of(root)
    assert executables_of(modules) == ["Fixed"]
    assert programs_of(modules) == ["SmallProgram"]
    assert specialisers_of(modules) == ["Maker"]
    assert bindings_of(modules) == {"onednn"}
    assert repeated_meanings(modules) == ["add"]
    assert memos_of(modules) == ["compiler/make.py: self._known"]
    assert list(repeated_classes(modules)) == ["Part"]


def test_a_table_has_all_counts(root: Path) -> None:
    counts = counted(modules_of(root))
    assert counts["functions that keep their results"] == 1
    assert counts["cost files"] == 1
    assert counts["code lines of runtime"] == 13
    assert counts["code lines"] == sum(
        count for name, count in counts.items() if name.startswith("code lines of ")
    )
