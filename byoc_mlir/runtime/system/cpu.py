"""Features of the processor that compiled code depends on, found without a compiler, and the
processor for which code is generated, which may be another machine's.

Instruction sets of x86-64 are levels, which an environment variable restricts. Features have the
kernel's names (`sse4_1`, as in /proc/cpuinfo); compilers know most of them by other names
(`sse4.1`).
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from byoc_mlir.errors import ByocError, IncompatibleArtifactError

MAX_ISA = "BYOC_MAX_ISA"
"""Environment variable with the highest level of `LEVELS` that this process uses; read once."""


@dataclass(frozen=True)
class Level:
    """Instruction set that includes the instruction sets of the levels before it."""

    name: str
    needs: frozenset[str]
    """Features that every processor of this level has, and that a processor of the previous level
    may lack."""
    others: frozenset[str]
    """Features that code may use from this level on if the processor has them."""


def _level(name: str, needs: str, others: str = "") -> Level:
    return Level(name, frozenset(needs.split()), frozenset(others.split()))


_TABLE = (
    _level("sse41", "sse4_1", "pni ssse3 cx16"),
    _level(
        "avx2",
        "avx avx2 fma f16c",
        "sse4_2 sse4a popcnt movbe abm bmi1 bmi2 adx fma4 xop aes pclmulqdq sha_ni rdrand rdseed"
        " fsgsbase",
    ),
    _level("avx512", "avx512f avx512cd avx512bw avx512dq avx512vl", "avx512er avx512pf"),
    _level(
        "avx512_vnni",
        "avx512_vnni",
        "avx_vnni avx512ifma avx512vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq vaes vpclmulqdq"
        " gfni",
    ),
    _level("avx512_bf16", "avx512_bf16"),
    _level("amx", "amx_tile amx_int8 amx_bf16", "avx512_fp16"),
)

LEVELS = tuple(level.name for level in _TABLE)
"""Names of the levels; each level includes the ones before it."""

FEATURES = frozenset[str]().union(*(level.needs | level.others for level in _TABLE))
"""Features of all levels."""

_ALWAYS = frozenset(("64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "sahf"))
"""Features of all processors of x86-64, by the names of compilers."""

_COMPILER_NAMES = {
    "pni": "sse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "abm": "lzcnt",
    "bmi1": "bmi",
    "pclmulqdq": "pclmul",
    "sha_ni": "sha",
    "rdrand": "rdrnd",
}


@cache
def max_level() -> str | None:
    """Returns the level that the environment variable names, or None.

    Raises:
        ByocError: there is no such level.
    """
    chosen = os.environ.get(MAX_ISA)
    if not chosen:
        return None
    if chosen not in LEVELS:
        raise ByocError(f"{MAX_ISA} is {chosen!r}, accepted are {', '.join(LEVELS)}; or unset it")
    return chosen


def features_up_to(level: str) -> frozenset[str]:
    """Returns the features that code may use at a level, by the kernel's names."""
    found = _TABLE[: LEVELS.index(level) + 1]
    return frozenset[str]().union(*(one.needs | one.others for one in found))


def compiler_features_up_to(level: str) -> frozenset[str]:
    """Returns the features that code may use at a level, by the names of compilers."""
    return _ALWAYS.union(_compiler_name(name) for name in features_up_to(level))


def missing_by_level(features: Iterable[str]) -> dict[str, list[str]]:
    """Returns, for each level, the sorted features that a processor with the given features
    lacks.
    """
    return {level.name: sorted(level.needs.difference(features)) for level in _TABLE}


def _compiler_name(feature: str) -> str:
    if feature.startswith("amx"):
        return feature.replace("_", "-")
    if feature.startswith("avx"):
        return feature.replace("_", "")
    return _COMPILER_NAMES.get(feature, feature)


CPU_INFO = Path("/proc/cpuinfo")

_AARCH64 = """
    fp asimd aes pmull sha1 sha2 sha3 crc32 atomics fphp asimdhp asimdrdm asimddp asimdfhm
    fcma jscvt lrcpc sve sve2 i8mm bf16 svei8mm svebf16
"""
_CODE_FEATURES = FEATURES.union(_AARCH64.split())
"""Features, by the kernel's names, that a code generator may use when it compiles for its host."""

BASELINE = {"aarch64": ("asimd", "fp"), "x86_64": ()}
"""Features that every processor of an architecture has, so that they need no check."""


_AMX = frozenset(["amx_tile", "amx_int8", "amx_bf16"])

MATRICES_REQUEST = (158, 0x1023, 18)
"""System call with which a process requests the registers of AMX: `arch_prctl`, its command
`ARCH_REQ_XCOMP_PERM`, and the number of that part of the processor's state."""


def _may_use_matrices() -> bool:
    """True if the kernel lets this process use the registers of AMX."""
    return ctypes.CDLL(None).syscall(*MATRICES_REQUEST) == 0


@dataclass(frozen=True)
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
        machine, level = Cpu.machine(), max_level()
        if level is None or machine.architecture != "x86_64":
            return machine
        allowed = features_up_to(level)
        return Cpu(machine.architecture, tuple(f for f in machine.features if f in allowed))

    @staticmethod
    @cache
    def machine() -> Cpu:
        """Returns the processor of this machine, unrestricted."""
        flags = _CODE_FEATURES.intersection(_cpu_info("flags", "Features").split())
        if flags >= _AMX and not _may_use_matrices():
            flags -= _AMX
        return Cpu(platform.machine(), tuple(sorted(flags)))

    @staticmethod
    def limit() -> str | None:
        """Returns the level of `LEVELS` that restricts this process.

        None if the machine does not exceed it, or the environment variable is not set.

        Raises:
            ByocError: the environment variable names no level.
        """
        return max_level() if Cpu.host() != Cpu.machine() else None

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


_TRIPLE = re.compile(rf"(?P<architecture>{'|'.join(BASELINE)})(-\w+)?-linux-(gnu|musl)")


@dataclass(frozen=True)
class Machine:
    """Machine, identified by its triple; its processor has the features common to all of the
    architecture.
    """

    triple: str
    cpu: Cpu

    @staticmethod
    def of(triple: str) -> Machine:
        """Returns the machine of a triple, such as `aarch64-linux-gnu`.

        Raises:
            ByocError: the triple is not supported.
        """
        found = _TRIPLE.fullmatch(triple)
        if found is None:
            accepted = ", ".join(f"{architecture}-linux-gnu" for architecture in BASELINE)
            raise ByocError(
                f"triple is {triple!r}, accepted are those of Linux on {' and '.join(BASELINE)}:"
                f" {accepted}"
            )
        architecture = found["architecture"]
        return Machine(triple, Cpu(architecture, BASELINE[architecture]))


_other: ContextVar[Machine | None] = ContextVar("other_machine", default=None)


def other_machine() -> Machine | None:
    """Returns the machine that this thread generates code for, or None if it is the local
    machine.
    """
    return _other.get()


def target_cpu() -> Cpu:
    """Returns the processor for generated code: the other machine's, or `Cpu.host()`.

    Raises:
        ByocError: as `Cpu.host`.
    """
    other = _other.get()
    return Cpu.host() if other is None else other.cpu


def has_vnni() -> bool:
    """True if generated code may use VNNI's dot products of packed 4-byte groups."""
    return not {"avx512_vnni", "avx_vnni"}.isdisjoint(target_cpu().features)


def has_amx() -> bool:
    """True if generated code may multiply matrices of `int8` with AMX."""
    return {"amx_tile", "amx_int8", "avx512f"} <= set(target_cpu().features)


@contextmanager
def generating_for(machine: Machine) -> Generator[None]:
    """Sets the machine that this thread compiles for in the `with` body."""
    token = _other.set(machine)
    try:
        yield
    finally:
        _other.reset(token)
