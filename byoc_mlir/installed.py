"""What installed packages offer, as their entry points say."""

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
"""Of the names of our groups."""

_HOME = str(Path(__file__).parents[1])
"""The folder, or the archive, that this package was imported from."""


def search_path() -> list[str]:
    """Returns `sys.path` without the current folder and what else is relative to it, which may be
    a stranger's; the folder of this package is kept in any case.
    """
    folders = [_absolute(folder) for folder in sys.path]
    kept = [folder for folder in folders if os.path.isabs(folder)]
    return kept if _HOME in kept else [*kept, _HOME]


def _absolute(folder: str) -> str:
    """Returns the folder of this package for a path that leads there, else the path as it is."""
    try:
        return _HOME if os.path.abspath(folder) == _HOME else folder
    except OSError:  # the current folder was deleted
        return folder


def installed_points(group: str) -> Sequence[EntryPoint]:
    """The entry points of a group, one of ours.

    A search reads a file of every installed package. It is repeated when one of the folders that
    modules come from has changed, as by an installation.
    """
    return _points(group, tuple((folder, _changed(folder)) for folder in search_path()))


_Folders: TypeAlias = "tuple[tuple[str, int], ...]"
"""Where modules come from, and when it was changed."""


@lru_cache(maxsize=8)
def _points(group: str, folders: _Folders) -> Sequence[EntryPoint]:
    return tuple(
        point for one in _offering(folders) for point in one.entry_points if point.group == group
    )


@lru_cache(maxsize=1)
def _offering(_: _Folders) -> Sequence[Distribution]:
    """What has entry points for us: one search serves all groups.

    Of two that have one name the first one counts, as for `importlib.metadata.entry_points`, which
    takes apart what all others offer.
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
    """Returns the file of that name in an installed distribution; `None` where there is neither."""
    try:
        files = installed(wheel).files or []
    except PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.name == name)
    return next((path.resolve() for path in found), None)


def _field(one: Distribution, name: str) -> str:
    """What a package says of itself; `one.metadata` imports a parser of mail to find it."""
    _, is_there, rest = (one.read_text("METADATA") or "").partition(f"\n{name}: ")
    return rest.partition("\n")[0].strip() if is_there else one.metadata[name]


def _changed(folder: str) -> int:
    """When a folder was changed, 0 where there is none."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
