"""OpenMP runtimes: those in this process, and those that installed packages would add to it.

Each runtime has threads of its own. Two of them in a process are correct, but their threads
compete for the cores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.metadata import distributions
from pathlib import Path, PurePath

_MAPS = Path("/proc/self/maps")

_NAME = re.compile(r"lib(gomp(?!-plugin)|iomp5|omp)([-.].*)?\.so(\..*)?")
"""GCC's, Intel's and LLVM's; a package's own copy has a hash in its name."""


def is_openmp_runtime(path: PurePath) -> bool:
    """Whether a file is an OpenMP runtime, by its name."""
    return _NAME.fullmatch(path.name) is not None


def loaded_runtimes(maps: str | None = None) -> Sequence[Path]:
    """The runtimes that this process has loaded, each once.

    Args:
        maps: what `/proc/self/maps` says; left out, it is read.
    """
    if maps is None:
        maps = _MAPS.read_text() if _MAPS.is_file() else ""
    fields = (line.split(maxsplit=5) for line in maps.splitlines())
    paths = (Path(parts[5]) for parts in fields if len(parts) == 6)
    return list(dict.fromkeys(path for path in paths if is_openmp_runtime(path)))


def packaged_runtimes() -> Sequence[tuple[str, Path]]:
    """The runtimes in installed packages, with the packages' names."""
    return [
        (distribution.name, Path(str(file.locate())).resolve())
        for distribution in distributions()
        for file in distribution.files or ()
        if is_openmp_runtime(file)
    ]


def describe_runtimes(
    loaded: Sequence[Path], packaged: Iterable[tuple[str, Path]]
) -> list[tuple[str, str]]:
    """Rows of a table: what there is, and what is wrong with it."""
    rows = [("OpenMP, loaded", str(path)) for path in loaded]
    others = [(name, path) for name, path in packaged if path not in loaded]
    rows += [("OpenMP, installed", f"{path}: comes with {name}") for name, path in others]
    if len(loaded) > 1:
        rows.append(("warning", _several(f"{len(loaded)} OpenMP runtimes are in this process")))
    elif others:
        names = ", ".join(sorted({name for name, _ in others}))
        rows.append(("warning", _several(f"with {names}, a process has two OpenMP runtimes")))
    return rows


def _several(what: str) -> str:
    return (
        f"{what}; their threads compete for the cores: let one of them have one thread"
        " (docs/processes.md)"
    )
