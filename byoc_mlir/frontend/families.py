"""Families of `frontend.ops`, imported when one of their ops is asked for."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from byoc_mlir.frontend import ops

PREFIX = f"{ops.__name__}."
"""Start of the names of their modules."""

_ALL = ""


def import_families(op_type: str = _ALL) -> None:
    """Imports the families whose source names an op in quotes.

    All families are imported without a name, for an op whose name a table composes, and where the
    sources are no files, as in an archive.
    """
    homes = _homes()
    for name in homes.get(op_type) or homes[_ALL]:
        import_module(name)


@cache
def _homes() -> Mapping[str, Sequence[str]]:
    """Returns the modules of the families by the words that their sources have in quotes."""
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for module in walk_packages(ops.__path__, PREFIX):
        homes[_ALL].append(module.name)
        path = Path(ops.__path__[0], *module.name.removeprefix(PREFIX).split("."))
        source = path.with_suffix(".py")
        if source.is_file():
            for word in set(re.findall(r'"(\w+)"', source.read_text())):
                homes[word].append(module.name)
    return homes
