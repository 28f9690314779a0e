"""Interface of the Python code that runs a backend's blobs in a compiled model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self, TypeAlias

from byoc_mlir.runtime.program import Array

RegionFunction: TypeAlias = Callable[[list[Array], list[Array]], None]
"""Function that computes a region from inputs into outputs; all are dense and row-major."""


class RegionModule(ABC):
    """Code of one or more regions in a backend's own format.

    A backend creates a module when it generates code. Its bytes are stored in the compiled model,
    and `load` recreates it when the model is loaded. Its file must import nothing of the compiler.
    """

    @classmethod
    @abstractmethod
    def load(cls, data: bytes) -> Self:
        """Returns the module that `save` wrote. Other bytes raise an error with a clear message."""

    @abstractmethod
    def save(self) -> bytes:
        """Returns all bytes that `load` needs."""

    @abstractmethod
    def get_function(self, symbol: str) -> RegionFunction:
        """Returns the function of region `symbol`. It is called once, and every run uses its
        result.

        Several threads may call the returned function at once.
        """

    def get_source(self) -> str:
        """Returns the code as readable text, or "" if there is none."""
        return ""
