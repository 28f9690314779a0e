"""Parameters that a compiled module has read, and whether they are still so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from byoc_mlir.runtime.program import Array
from byoc_mlir.torch.tensors import array_of

_WHOLE = 256
"""Words of the largest parameter that is compared as a whole."""

_SAMPLES = 16
"""Words of each larger parameter that are compared."""


class Parameters:
    """Tensors as they were when a module was compiled.

    PyTorch counts changes of a tensor, but for changes through its `.data` and of tensors that are
    made in inference mode. Words of the memory, spread over it, show these.

    Args:
        named: tensors with their names.
    """

    def __init__(self, named: Iterable[tuple[str, Any]]):
        self._held = [(name, tensor, _state(tensor)) for name, tensor in named]
        self._words = [_words(tensor, name) for name, tensor, _ in self._held]
        self._seen = [words.copy() for words in self._words]
        self._all_seen = self._all()

    def changed(self) -> str | None:
        """Returns the name of a tensor that was changed since, if one was."""
        for name, tensor, state in self._held:
            if _state(tensor) != state:
                return name
        if self._all() == self._all_seen:
            return None
        words = zip(self._held, self._words, self._seen, strict=True)
        return next(held[0] for held, now, then in words if not np.array_equal(now, then))

    def _all(self) -> bytes:
        return np.concatenate(self._words).tobytes() if self._words else b""


def _state(tensor: Any) -> tuple[int, int]:
    """Returns where a tensor is, and how often PyTorch knows it to have changed."""
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version


def _words(tensor: Any, name: str) -> Array:
    """Returns words of a tensor's memory: all of it, or some that are spread over it."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    length = 1 + sum((size - 1) * stride for size, stride in sizes) if tensor.numel() else 0
    memory = array_of(tensor.detach().as_strided((length,), (1,)), name)
    memory = memory.reshape(-1).view(np.uint8)
    words = memory.view(np.int32) if memory.size % 4 == 0 else memory
    return words if words.size <= _WHOLE else words[:: words.size // _SAMPLES | 1]
