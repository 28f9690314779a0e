"""Compiled models as files: a shared object, or an object file, with a C header."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from byoc_mlir.runtime.executable import FileKind
    from byoc_mlir.runtime.plan import Node


def write(kind: FileKind, plan: Node, path: Path, name: str | None) -> Path:
    """Writes a complete plan to a file with the function of `artifact.export` for its kind.

    Returns:
        The header's path.
    """
    from byoc_mlir.artifact import export  # 20 ms, and few programs are exported

    function = export.export_library if kind == "library" else export.export_object
    return function(plan, path, name)
