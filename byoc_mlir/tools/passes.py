"""Passes of the compiler, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

from xdsl.passes import ModulePass

_PACKAGE = Path(__file__).parent.parent

_FOLDERS = (
    "transforms",
    "compiler/partition",
    "lowering",
    "lowering/convolutions",
    "lowering/integer_products",
    "lowering/linalg_to_loops",
    "lowering/relay_to_linalg",
    "lowering/to_llvm",
)
"""Folders with passes: one in a file, which has the pass's name."""


def all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Returns for each name a function that imports and returns the pass class."""
    return dict(_passes())


def _passes() -> Iterator[tuple[str, Callable[[], type[ModulePass]]]]:
    """Yields the passes of the files that define a pass of their name."""
    for folder in _FOLDERS:
        for file in sorted((_PACKAGE / folder).glob("*.py")):
            name = file.stem.replace("_", "-")
            if f'    name = "{name}"\n' in file.read_text():
                yield name, partial(_load, f"{folder.replace('/', '.')}.{file.stem}", name)


def _load(module_name: str, name: str) -> type[ModulePass]:
    module = import_module(f"byoc_mlir.{module_name}")
    for found in vars(module).values():
        is_pass = isinstance(found, type) and issubclass(found, ModulePass)
        if is_pass and getattr(found, "name", "") == name:
            return found
    raise ImportError(f"{module.__name__} has no pass {name}")
