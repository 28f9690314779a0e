"""Engine for this project as it is installed: oneDNN and the host compiler."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from byoc_mlir import compile as compile_model  # imported here, as other engines' libraries are


class Engine:
    """Executable of `compile` with its default options."""

    targets: tuple[str, ...] | None = None

    def __init__(self, model: Path, threads: int, precision: str):
        asked = "bf16" if precision == "bf16" else "f32"  # of int8 is the model itself
        cache = os.environ.get("BYOC_CACHE_DIR") or False  # the benchmark that caches names one
        self.executable = compile_model(
            model, targets=self.targets, threads=threads, precision=asked, cache=cache
        )

    def run(self, inputs: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the outputs by name."""
        return self.executable.run(inputs)

    def wait(self) -> None:
        """Waits until nothing is compiled in the background."""
        self.executable.wait()
