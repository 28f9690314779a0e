"""What the compiler hands to the runtime: object code and everything it refers to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.runtime.report import Report

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class TensorSpec:
    """A tensor that goes in or comes out: dense, row-major, in native byte order."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class LibrarySymbol:
    """A function of a shared object that the object code calls under the name `symbol`."""

    symbol: str
    library: Path
    name: str


@dataclass(frozen=True)
class PythonRegion:
    """A region that Python code runs: `loader` names the `RegionModule` that `data` makes.

    `symbol` is the name under which the object code calls it, `region` that of the function.
    """

    symbol: str
    region: str
    loader: str
    data: bytes
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class Program:
    """A compiled model, for one set of input shapes. See docs/architecture.md, "Native code"."""

    object_code: bytes
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    weights: Mapping[str, Array]
    """External symbol to the array whose first byte it is."""
    externals: tuple[str, ...]
    """Functions that the object code calls and `libraries` or the process define."""
    libraries: tuple[Path, ...]
    library_symbols: tuple[LibrarySymbol, ...]
    python_regions: tuple[PythonRegion, ...]
    regions: tuple[str, ...]
    """The regions' symbols, in the order of the numbers that statuses carry."""
    state_slots: int
    context_slots: int
    arena_bytes: int
    threads: int
    report: Report
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """By region: the text that its backend generated, if it generated text."""
