"""Libraries of NVIDIA's toolkit, such as cuDNN, which wheels install."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xdsl.ir import SSAValue

from byoc_mlir.errors import BackendError, ExecutionError
from byoc_mlir.installed import library_in_wheel
from byoc_mlir.kernels.builder import FunctionBuilder
from byoc_mlir.runtime.program import SharedLibrary
from byoc_mlir.runtime.system.libraries import load_library

EXPLAIN = "cuda_explain"
"""Function `void (text)` of the device `cuda`: keeps the text of a library's status for the error.
"""


@dataclass(frozen=True)
class ToolkitLibrary:
    """A library of the toolkit."""

    name: str
    """Name in messages."""
    file: str
    """Name of its file in the wheels, with which the dynamic loader finds it, too."""
    environment: str
    """Environment variable with the path of a file to use instead."""
    wheels: tuple[str, ...]
    """Distributions that have it, the preferred one first."""

    def path(self) -> Path:
        """Returns its path: the user's choice, that of a wheel, or the name for the loader."""
        chosen = os.environ.get(self.environment)
        if chosen:
            return Path(chosen)
        return _installed(self.wheels, self.file) or Path(self.file)

    def requirement(self) -> SharedLibrary:
        """Returns the shared library that compiled code needs at load time."""
        return SharedLibrary(self.path(), self.environment, wheels=self.wheels)

    def load(self) -> ctypes.CDLL:
        """Loads the library, without the driver.

        Raises:
            BackendError: it cannot be loaded.
        """
        try:
            return load_library(self.path())
        except ExecutionError as error:
            raise BackendError(
                f"{self.name} is not installed ({error}); install it with"
                f" `pip install {self.wheels[0]}`, or name its library in {self.environment}"
            ) from error


@cache
def _installed(wheels: tuple[str, ...], file: str) -> Path | None:
    """Returns the path of a file in the first of the wheels that is installed.

    It is kept, because a search takes 9 ms.
    """
    found = (library_in_wheel(wheel, file) for wheel in wheels)
    return next((path for path in found if path is not None), None)


def explain(function: FunctionBuilder, status: SSAValue, text: Callable[[], SSAValue]) -> None:
    """Generates code that keeps the text of a library's status, if it is a failure.

    Args:
        status: 0, or a number of at least `LIBRARY_STATUS`.
        text: function that generates the address of the text, which stays valid.
    """
    failed = function.failed(status)
    function.when(failed, lambda: function.do(EXPLAIN, text()))
