"""What a model takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model; a dimension that is not bound is its symbol's name."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str, ...]

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a number."""
        return all(isinstance(size, int) for size in self.shape)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"
