"""What installed packages offer, as their entry points say."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import TypeAlias


def installed_points(group: str) -> Sequence[EntryPoint]:
    """The entry points of a group.

    A search reads a file of every installed package. It is repeated when one of the folders that
    modules come from has changed, as by an installation.
    """
    return _points(group, tuple((folder, _changed(folder)) for folder in sys.path))


_Folders: TypeAlias = "tuple[tuple[str, int], ...]"
"""Where modules come from, and when it was changed."""


@lru_cache(maxsize=8)
def _points(group: str, folders: _Folders) -> Sequence[EntryPoint]:
    return tuple(_all_points(folders).select(group=group))


@lru_cache(maxsize=1)
def _all_points(_: _Folders) -> EntryPoints:
    """Those of all groups: one search serves them."""
    return entry_points()  # pyright: ignore[reportReturnType]  # 3.11 has a class of its own, alike


def _changed(folder: str) -> int:
    """When a folder was changed, 0 where there is none."""
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return 0
