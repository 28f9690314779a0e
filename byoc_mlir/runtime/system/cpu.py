"""What the processor can do, as far as compiled code depends on it; found without a compiler."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from byoc_mlir.errors import IncompatibleArtifactError
from byoc_mlir.runtime.system import isa

CPU_INFO = Path("/proc/cpuinfo")

_AARCH64 = """
    fp asimd aes pmull sha1 sha2 sha3 crc32 atomics fphp asimdhp asimdrdm asimddp asimdfhm
    fcma jscvt lrcpc sve sve2 i8mm bf16 svei8mm svebf16
"""
_CODE_FEATURES = isa.FEATURES.union(_AARCH64.split())
"""The kernel's names of features that a code generator may use when it compiles for its host."""

BASELINE = {"aarch64": ("asimd", "fp"), "x86_64": ()}
"""Those of them that every processor of an architecture has, and so nobody needs to look for."""


@dataclass(frozen=True)
class Cpu:
    """An architecture (`x86_64`) and features of it, by the kernel's names (`avx2`), sorted."""

    architecture: str
    features: tuple[str, ...]

    @staticmethod
    @cache
    def host() -> Cpu:
        """What code of this process may use: the machine, lowered to the level of `BYOC_MAX_ISA`.

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
        """The machine this process runs on."""
        flags = _cpu_info("flags", "Features").split()
        return Cpu(platform.machine(), tuple(sorted(_CODE_FEATURES.intersection(flags))))

    @staticmethod
    def limit() -> str | None:
        """The level of `isa.LEVELS` that this process keeps to; `None` where that is the machine's.

        Raises:
            ByocError: the environment variable names no level.
        """
        return isa.max_level() if Cpu.host() != Cpu.machine() else None

    @property
    def optional_features(self) -> tuple[str, ...]:
        """The features that some processors of the architecture lack."""
        known = BASELINE.get(self.architecture, ())
        return tuple(name for name in self.features if name not in known)

    def check(self, what: str) -> None:
        """Checks that code for this machine runs on the host.

        Raises:
            IncompatibleArtifactError: it does not; the message says what is missing.
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
    """What the processor is called; the architecture where the kernel does not say."""
    return _cpu_info("model name") or platform.machine()


def _cpu_info(*keys: str) -> str:
    """What the kernel says of the first processor under one of the keys; else nothing."""
    if not CPU_INFO.is_file():
        return ""
    for line in CPU_INFO.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in keys:
            return value.strip()
    return ""
