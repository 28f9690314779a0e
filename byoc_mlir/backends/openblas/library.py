"""Lookup of OpenBLAS: the shared object of the wheel `scipy-openblas64`, or one built like it."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from byoc_mlir.errors import BackendError, ExecutionError
from byoc_mlir.installed import library_in_wheel
from byoc_mlir.runtime.program import SharedLibrary
from byoc_mlir.runtime.system import libraries

ENVIRONMENT_VARIABLE = "BYOC_OPENBLAS_LIBRARY"
"""Environment variable with the path of a shared object to use instead of the installed one."""

WHEEL = "scipy-openblas64"
SONAME = "libscipy_openblas64_.so"

SGEMM = "scipy_cblas_sgemm64_"
SGEMV = "scipy_cblas_sgemv64_"
SET_THREADS = "scipy_openblas_set_num_threads64_"
_CONFIGURATION = "scipy_openblas_get_config64_"
"""Names in the wheel, which do not collide with NumPy's OpenBLAS; integers have 64 bits."""

_INSTALL = f"install it with `pip install {WHEEL}`"


@dataclass(frozen=True)
class OpenBlas:
    """A loaded OpenBLAS."""

    path: Path
    configuration: str
    """Version, build options and kernels of the library."""

    @property
    def requirement(self) -> SharedLibrary:
        """Returns the shared library that compiled code needs at load time."""
        return SharedLibrary(self.path, ENVIRONMENT_VARIABLE, wheels=(WHEEL,))


@cache
def load_library() -> OpenBlas:
    """Returns the OpenBLAS of this process: the user's choice first, then the wheel.

    Raises:
        BackendError: there is no OpenBLAS, or its functions have other names.
    """
    path = _locate()
    if path is None:
        raise BackendError(f"there is no OpenBLAS; {_INSTALL}")
    try:
        handle = libraries.load_library(path)
    except ExecutionError as error:
        raise BackendError(f"OpenBLAS cannot be loaded ({error}); {_INSTALL}") from error
    for name in (SGEMM, SGEMV, SET_THREADS, _CONFIGURATION):
        if not hasattr(handle, name):
            raise BackendError(f"{path} has no function {name}; {_INSTALL}")
    function = handle[_CONFIGURATION]
    function.restype = ctypes.c_char_p
    return OpenBlas(path, function().decode().strip())


def unavailable_reason() -> str | None:
    """Returns why there is no usable OpenBLAS and what to do about it, or `None`."""
    try:
        load_library()
    except BackendError as error:
        return str(error)
    return None


def _locate() -> Path | None:
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(chosen) if chosen else library_in_wheel(WHEEL, SONAME)
