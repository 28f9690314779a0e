"""What a compiled module has read of a module, and whether it is still so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Parameters:
    """Tensors as they were when a module was compiled.

    Args:
        named: tensors with their names. Tensors made in inference mode do not count their changes,
            so changes of them are not noticed.
    """

    def __init__(self, named: Iterable[tuple[str, Any]]):
        self._held = [
            (name, tensor, tensor._version) for name, tensor in named if not tensor.is_inference()
        ]

    def changed(self) -> str | None:
        """The name of a tensor that was changed since, if one was."""
        for name, tensor, version in self._held:
            if tensor._version != version:
                return name
        return None
