"""One small function per ONNX op, in families that are imported when an op of them is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages


def import_families(op_type: str = "") -> None:
    """Imports the families whose source names an op in quotes.

    All families are imported without a name, for an op whose name a table composes, and where the
    sources are no files, as in an archive.
    """
    named = [name for name, source in _sources().items() if f'"{op_type}"' in source]
    for name in named or [one.name for one in walk_packages(__path__, f"{__name__}.")]:
        import_module(name)


@cache
def _sources() -> Mapping[str, str]:
    """Returns the sources of the families by the names of their modules."""
    root = Path(__file__).parent
    paths = sorted(path for path in root.rglob("*.py") if path.name != "__init__.py")
    return {
        ".".join((__name__, *path.relative_to(root).with_suffix("").parts)): path.read_text()
        for path in paths
    }
