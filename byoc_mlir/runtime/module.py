"""What runs the blobs of a backend, in Python, where the compiled model runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self, TypeAlias

from byoc_mlir.runtime.program import Array

RegionFunction: TypeAlias = Callable[[list[Array], list[Array]], None]
"""Computes a region: takes its inputs, fills its outputs. Both are dense and row-major."""


class RegionModule(ABC):
    """The code of one or more regions in a form of the backend's own.

    A backend makes one when it generates code; its bytes travel with the compiled model, and
    `load` makes it again where that is loaded. Its file must import nothing of the compiler.
    """

    @classmethod
    @abstractmethod
    def load(cls, data: bytes) -> Self:
        """The module that `save` wrote. Bytes that it did not write raise an error with words."""

    @abstractmethod
    def save(self) -> bytes:
        """Everything that `load` needs."""

    @abstractmethod
    def get_function(self, symbol: str) -> RegionFunction:
        """The function of region `symbol`; called once, its result for every run.

        Runs of several threads may call the result at once.
        """

    def get_source(self) -> str:
        """The code as text for people, empty when there is none."""
        return ""
