"""Entry points of installed packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distributions
from pathlib import Path
from typing import TypeAlias

_FILE = "entry_points.txt"
_PREFIX = "byoc_mlir."
"""Prefix of the names of our groups."""

_HOME = str(Path(__file__).parents[1])
"""The folder, or the archive, from which this package was imported."""


def search_path() -> list[str]:
    """Returns `sys.path` without relative folders, such as the current one, which others may
    control.

    The folder of this package is always included.
    """
    folders = [_absolute(folder) for folder in sys.path]
    kept = [folder for folder in folders if os.path.isabs(folder)]
    return kept if _HOME in kept else [*kept, _HOME]


def _absolute(folder: str) -> str:
    """Returns the folder of this package for a path that leads there, or else the path
    unchanged.
    """
    try:
        return _HOME if os.path.abspath(folder) == _HOME else folder
    except OSError:  # the current folder was deleted
        return folder


def installed_points(group: str) -> Sequence[EntryPoint]:
    """Returns the entry points of one of our groups.

    A search reads a file of every installed package. It is repeated if one of the folders of
    modules has changed, as by an installation.
    """
    return _points(group, tuple((folder, _changed(folder)) for folder in search_path()))


_Folders: TypeAlias = "tuple[tuple[str, int], ...]"
"""Folders of modules, with the times of their last change."""


@lru_cache(maxsize=8)
def _points(group: str, folders: _Folders) -> Sequence[EntryPoint]:
    return tuple(
        point for one in _offering(folders) for point in one.entry_points if point.group == group
    )


@lru_cache(maxsize=1)
def _offering(_: _Folders) -> Sequence[Distribution]:
    """Returns the packages with entry points for us; one search serves all groups.

    If two packages have the same name, the first one counts, as for
    `importlib.metadata.entry_points`. That function is slower, because it parses the entry points
    of all packages.
    """
    found = (
        one for one in distributions(path=search_path()) if _PREFIX in (one.read_text(_FILE) or "")
    )
    return tuple(map(installed, dict.fromkeys(_field(one, "Name") for one in found)))


def installed(name: str) -> Distribution:
    """Returns an installed package; one in the current folder does not count.

    Raises:
        PackageNotFoundError: it is not installed.
    """
    for found in distributions(name=name, path=search_path()):
        return found
    raise PackageNotFoundError(name)


def installed_version(name: str) -> str:
    """Returns the version of an installed package.

    Raises:
        PackageNotFoundError: it is not installed.
    """
    return _field(installed(name), "Version")


def library_in_wheel(wheel: str, name: str) -> Path | None:
    """Returns the file of that name in an installed distribution; `None` if either is missing."""
    try:
        files = installed(wheel).files or []
    except PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.name == name)
    return next((path.resolve() for path in found), None)


def _field(one: Distribution, name: str) -> str:
    """Returns a metadata field of a package, without `one.metadata`, which imports a mail
    parser.
    """
    _, is_there, rest = (one.read_text("METADATA") or "").partition(f"\n{name}: ")
    return rest.partition("\n")[0].strip() if is_there else one.metadata[name]


def _changed(folder: str) -> int:
    """Returns the time of a folder's last change, or 0 if there is none."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
