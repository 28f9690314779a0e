"""Shared objects that come in wheels."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

from byoc_mlir.installed import installed


def library_in_wheel(wheel: str, name: str) -> Path | None:
    """The file of that name in an installed distribution; `None` where there is neither."""
    try:
        files = installed(wheel).files or []
    except PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.name == name)
    return next((path.resolve() for path in found), None)
