"""The GPU that the driver finds on this machine."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from byoc_mlir.errors import BackendError, ExecutionError
from byoc_mlir.nvidia.driver import (
    CAPABILITY,
    ENVIRONMENT_VARIABLE,
    NAME_BYTES,
    ORDINAL,
    driver_library,
)
from byoc_mlir.runtime.system.libraries import load_library

ARCHITECTURE = (7, 5)
"""Lowest compute capability that is used; code for it runs on all later ones."""

_FEWEST_VERSION = 12000
"""Oldest driver: the version of CUDA that it supports, 1000 times the major version."""


@dataclass(frozen=True)
class Gpu:
    """A GPU with its driver."""

    name: str
    capability: tuple[int, int]
    driver: int
    """Version of CUDA that the driver supports: 13020 for 13.2."""
    memory_bytes: int

    @property
    def identity(self) -> str:
        """Returns all that machine code for the GPU depends on."""
        major, minor = self.capability
        return f"{self.name}, compute capability {major}.{minor}, driver for CUDA {self.cuda}"

    @property
    def cuda(self) -> str:
        """Returns the version of CUDA that the driver supports, such as 13.2."""
        return version_text(self.driver)


def version_text(version: int) -> str:
    """Returns a driver's version as users know it: 13.2 for 13020."""
    return f"{version // 1000}.{version % 1000 // 10}"


def find_gpu() -> Gpu:
    """Returns the GPU that models run on.

    Raises:
        BackendError: there is no driver or no GPU, or one of them is too old.
    """
    return _found_by(driver_library().path)


def forget_gpus() -> None:
    """Clears the cache of GPUs that were found, as after a change of `CUDA_VISIBLE_DEVICES`."""
    _found_by.cache_clear()


def load_driver(path: Path) -> ctypes.CDLL:
    """Loads the driver's library.

    Raises:
        BackendError: it cannot be loaded.
    """
    try:
        return load_library(path)
    except ExecutionError as error:
        raise BackendError(
            f"NVIDIA's driver is not installed ({error}); install it, or name its library"
            f" in {ENVIRONMENT_VARIABLE}"
        ) from error


@cache
def _found_by(path: Path) -> Gpu:
    driver = load_driver(path)
    version = ctypes.c_int()
    _check(driver, driver.cuDriverGetVersion(ctypes.byref(version)), "has no version")
    if version.value < _FEWEST_VERSION:
        raise BackendError(
            f"NVIDIA's driver is too old: it supports CUDA {version_text(version.value)}, needed"
            f" is {version_text(_FEWEST_VERSION)} or later; install a newer driver"
        )
    _check(driver, driver.cuInit(0), "finds no GPU")
    device = ctypes.c_int()
    _check(driver, driver.cuDeviceGet(ctypes.byref(device), ORDINAL), "finds no GPU")
    gpu = _described(driver, device, version.value)
    if gpu.capability < ARCHITECTURE:
        least = ".".join(map(str, ARCHITECTURE))
        found = ".".join(map(str, gpu.capability))
        raise BackendError(
            f"{gpu.name} has compute capability {found}, needed is {least} or later; name another"
            " GPU in CUDA_VISIBLE_DEVICES"
        )
    return gpu


def _described(driver: ctypes.CDLL, device: ctypes.c_int, version: int) -> Gpu:
    name = ctypes.create_string_buffer(NAME_BYTES)
    _check(driver, driver.cuDeviceGetName(name, NAME_BYTES, device), "names no GPU")
    capability: list[int] = []
    for attribute in CAPABILITY:
        value = ctypes.c_int()
        status = driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        _check(driver, status, "describes no GPU")
        capability.append(value.value)
    size = ctypes.c_size_t()
    _check(driver, driver.cuDeviceTotalMem_v2(ctypes.byref(size), device), "describes no GPU")
    major, minor = capability
    return Gpu(name.value.decode(), (major, minor), version, size.value)


def _check(driver: ctypes.CDLL, status: int, problem: str) -> None:
    if status:
        raise BackendError(
            f"NVIDIA's driver {problem}: {message(driver, status)} (status {status}); check"
            " `nvidia-smi` and CUDA_VISIBLE_DEVICES"
        )


def message(driver: ctypes.CDLL, status: int) -> str:
    """Returns the driver's text of a status."""
    text = ctypes.c_char_p()
    if driver.cuGetErrorString(status, ctypes.byref(text)) or text.value is None:
        return "an unknown status"
    return text.value.decode()
