"""Features of the processor that compiled code depends on; they are found without a compiler."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

from byoc_mlir.errors import IncompatibleArtifactError
from byoc_mlir.records import record
from byoc_mlir.runtime.system import isa

CPU_INFO = Path("/proc/cpuinfo")

_AARCH64 = """
    fp asimd aes pmull sha1 sha2 sha3 crc32 atomics fphp asimdhp asimdrdm asimddp asimdfhm
    fcma jscvt lrcpc sve sve2 i8mm bf16 svei8mm svebf16
"""
_CODE_FEATURES = isa.FEATURES.union(_AARCH64.split())
"""Features, by the kernel's names, that a code generator may use when it compiles for its host."""

BASELINE = {"aarch64": ("asimd", "fp"), "x86_64": ()}
"""Features that every processor of an architecture has, so that they need no check."""


@record
class Cpu:
    """Architecture (`x86_64`) with its features by the kernel's names (`avx2`), sorted."""

    architecture: str
    features: tuple[str, ...]

    @staticmethod
    @cache
    def host() -> Cpu:
        """Returns the processor that code of this process may use.

        It is the machine, restricted to the level of `BYOC_MAX_ISA`.

        Raises:
            ByocError: the environment variable names no level.
        """
        machine, level = Cpu.machine(), isa.max_level()
        if level is None or machine.architecture != "x86_64":
            return machine
        allowed = isa.features_up_to(level)
        return Cpu(machine.architecture, tuple(f for f in machine.features if f in allowed))

    @staticmethod
    @cache
    def machine() -> Cpu:
        """Returns the processor of this machine, unrestricted."""
        flags = _cpu_info("flags", "Features").split()
        return Cpu(platform.machine(), tuple(sorted(_CODE_FEATURES.intersection(flags))))

    @staticmethod
    def limit() -> str | None:
        """Returns the level of `isa.LEVELS` that restricts this process.

        None if the machine does not exceed it, or the environment variable is not set.

        Raises:
            ByocError: the environment variable names no level.
        """
        return isa.max_level() if Cpu.host() != Cpu.machine() else None

    @property
    def optional_features(self) -> tuple[str, ...]:
        """Returns the features that some processors of the architecture lack."""
        known = BASELINE.get(self.architecture, ())
        return tuple(name for name in self.features if name not in known)

    def check(self, what: str) -> None:
        """Checks that code for this processor runs on the host.

        Raises:
            IncompatibleArtifactError: the host lacks features, which the message names.
        """
        host = Cpu.host()
        if self.architecture != host.architecture:
            raise IncompatibleArtifactError(
                f"{what} is for {self.architecture}, this machine is {host.architecture};"
                " compile the model here"
            )
        missing = [name for name in self.features if name not in host.features]
        if missing:
            raise IncompatibleArtifactError(
                f"{what} needs the processor features {', '.join(missing)}, which this machine"
                " lacks; compile the model here"
            )


def model_name() -> str:
    """Returns the name of the processor, or the architecture if the kernel reports none."""
    return _cpu_info("model name") or platform.machine()


def _cpu_info(*keys: str) -> str:
    """Returns the kernel's value for the first processor under the first known key, or ""."""
    if not CPU_INFO.is_file():
        return ""
    for line in CPU_INFO.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in keys:
            return value.strip()
    return ""
