"""What installed packages offer, as their entry points say."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points


def installed_points(group: str) -> Sequence[EntryPoint]:
    """The entry points of a group.

    A search reads a file of every installed package. It is repeated when one of the folders that
    modules come from has changed, as by an installation.
    """
    return tuple(
        _points(tuple((folder, _changed(folder)) for folder in sys.path)).select(group=group)
    )


@lru_cache(maxsize=2)
def _points(_: tuple[tuple[str, int], ...]) -> EntryPoints:
    """The entry points of all groups: one search serves all."""
    return entry_points()


def _changed(folder: str) -> int:
    """When a folder was changed, 0 where there is none."""
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return 0
