"""One small function per ONNX op, in families that are imported when an op of them is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path


def import_families(op_type: str = "") -> None:
    """Imports the families whose text names an op in quotes; without a name, all families.

    An op that no family names in quotes may have a name that a table composes: all are imported.
    """
    families = _families()
    named = [name for name, text in families.items() if f'"{op_type}"' in text]
    for name in named or families:
        import_module(name)


@cache
def _families() -> Mapping[str, str]:
    """Returns the texts of the families by the names of their modules."""
    root = Path(__file__).parent
    paths = sorted(path for path in root.rglob("*.py") if path.name != "__init__.py")
    return {
        ".".join((__name__, *path.relative_to(root).with_suffix("").parts)): path.read_text()
        for path in paths
    }
