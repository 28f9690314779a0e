"""cuDNN of this process: found, loaded and called by `ctypes`."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from byoc_mlir.errors import BackendError
from byoc_mlir.nvidia.driver import driver_library
from byoc_mlir.nvidia.gpu import load_driver
from byoc_mlir.nvidia.libraries import ToolkitLibrary

CUDNN = ToolkitLibrary(
    "cuDNN",
    "libcudnn.so.9",
    "BYOC_CUDNN_LIBRARY",
    ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"),
)

_MESSAGE_BYTES = 512


@dataclass(frozen=True)
class Cudnn:
    """A loaded cuDNN."""

    path: Path
    handle: ctypes.CDLL
    version: int
    """Number that `cudnnGetVersion` returns: 91900 for 9.19.0."""

    def check(self, status: int, what: str) -> None:
        """Checks a status.

        Raises:
            BackendError: it is a failure.
        """
        if status:
            raise BackendError(f"cuDNN {self.version_text} {what}: {self._message(status)}")

    def _message(self, status: int) -> str:
        """Returns the library's text of a status, with its reason, if it gives one."""
        text = self.handle.cudnnGetErrorString(status).decode()
        reason = ctypes.create_string_buffer(_MESSAGE_BYTES)
        self.handle.cudnnGetLastErrorString(reason, ctypes.c_size_t(_MESSAGE_BYTES))
        found = reason.value.decode(errors="replace").strip()
        return f"{text} ({found})" if found else text

    @property
    def version_text(self) -> str:
        """Returns the version as users know it: 9.19.0."""
        return version_text(self.version)


def version_text(version: int) -> str:
    """Returns a version as users know it: 9.19.0 for 91900."""
    return f"{version // 10000}.{version % 10000 // 100}.{version % 100}"


def load_cudnn() -> Cudnn:
    """Returns the cuDNN of this process.

    Raises:
        BackendError: there is none.
    """
    return _loaded(CUDNN.path(), driver_library().path)


@cache
def _loaded(path: Path, driver: Path) -> Cudnn:
    _load_driver_first(driver)
    handle = CUDNN.load()
    handle.cudnnGetErrorString.restype = ctypes.c_char_p
    handle.cudnnGetVersion.restype = ctypes.c_size_t
    return Cudnn(path, handle, handle.cudnnGetVersion())


def _load_driver_first(path: Path) -> None:
    """Loads the driver, which cuDNN looks for by its name, from where the user says it is."""
    try:
        load_driver(path)
    except BackendError:
        return  # plans need no driver
