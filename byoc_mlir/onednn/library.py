"""Loading of `libdnnl`: any OpenMP build of oneDNN 3.x on x86-64 Linux."""

from __future__ import annotations

import ctypes
import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from byoc_mlir.errors import BackendError
from byoc_mlir.installed import library_in_wheel
from byoc_mlir.runtime.program import IsaSwitch, SharedLibrary
from byoc_mlir.runtime.system.libraries import limit_isa, prepare_openmp_environment

ENVIRONMENT_VARIABLE = "BYOC_DNNL_LIBRARY"
"""Variable with the path of the shared object to use instead of the installed one."""

_ARCHITECTURE = "x86_64"
"""Architecture of the wheel; elsewhere, layouts and names of instructions differ."""

WHEEL = "onednn-cpu-gomp"
SONAME = "libdnnl.so.3"
OPENMP_RUNTIME = 2
_RUNTIMES = {1: "sequential", 2: "OpenMP", 4: "TBB", 8: "threadpool", 256: "OpenCL", 512: "SYCL"}
_INSTALL = f"install it with `pip install {WHEEL}==2023.1.0`"


ISA_VARIABLES = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""Variables of oneDNN that limit its instructions."""

_ISA_SWITCH = IsaSwitch(
    "dnnl_set_max_cpu_isa",
    (  # `dnnl_cpu_isa_t`
        ("sse41", 0x1),
        ("avx2", 0x7),
        ("avx512", 0x27),
        ("avx512_vnni", 0x67),
        ("avx512_bf16", 0xE7),
        ("amx", 0xFEF),
    ),
    ISA_VARIABLES,
)


@dataclass(frozen=True)
class Library:
    """Loaded oneDNN library."""

    path: Path
    handle: ctypes.CDLL
    version: tuple[int, int, int]

    @property
    def requirement(self) -> SharedLibrary:
        """Returns the library as a requirement of compiled code."""
        return SharedLibrary(
            self.path, ENVIRONMENT_VARIABLE, "dnnl_version", self.version, _ISA_SWITCH
        )


class _Version(ctypes.Structure):
    """Structure `dnnl_version_t`."""

    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("patch", ctypes.c_int),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    )


@cache
def load_library() -> Library:
    """Loads the oneDNN of this process: the user's choice, else the wheel, else by the loader's
    path.

    Raises:
        BackendError: oneDNN is missing, is not an OpenMP build of version 3, or the machine is no
            x86-64.
    """
    if platform.machine() != _ARCHITECTURE:
        raise BackendError(
            f"oneDNN is used on {_ARCHITECTURE} alone, this machine is {platform.machine()}; the"
            " host compiler takes the whole model"
        )
    path = _locate()
    prepare_openmp_environment()
    try:
        handle = ctypes.CDLL(str(path))
    except OSError as error:
        raise BackendError(f"oneDNN cannot be loaded ({error}); {_INSTALL}") from error
    version = _checked_version(path, handle)
    limit_isa(handle, _ISA_SWITCH)
    return Library(path, handle, version)


def unavailable_reason() -> str | None:
    """Returns why there is no usable oneDNN and what to do about it, or `None`."""
    try:
        load_library()
    except BackendError as error:
        return str(error)
    return None


def _locate() -> Path:
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen:
        return Path(chosen)
    return library_in_wheel(WHEEL, SONAME) or Path(SONAME)


def _checked_version(path: Path, handle: ctypes.CDLL) -> tuple[int, int, int]:
    try:
        function = handle.dnnl_version
    except AttributeError as error:
        raise BackendError(f"{path} is not oneDNN: it has no dnnl_version; {_INSTALL}") from error
    function.restype = ctypes.POINTER(_Version)
    version = function().contents
    if version.major != 3:
        raise BackendError(
            f"{path} is oneDNN {version.major}.{version.minor}, accepted is 3.x; {_INSTALL}"
        )
    if version.cpu_runtime != OPENMP_RUNTIME:
        found = _RUNTIMES.get(version.cpu_runtime, str(version.cpu_runtime))
        raise BackendError(
            f"{path} is a {found} build of oneDNN, accepted is an OpenMP build; {_INSTALL},"
            f" or name another one in {ENVIRONMENT_VARIABLE}"
        )
    return (version.major, version.minor, version.patch)
