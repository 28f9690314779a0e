"""What the processor can do, as far as compiled code depends on it; found without a compiler."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from byoc_mlir.errors import IncompatibleArtifactError

CPU_INFO = Path("/proc/cpuinfo")

_X86_64 = """
    pni ssse3 sse4_1 sse4_2 sse4a popcnt cx16 movbe abm bmi1 bmi2 adx f16c fma fma4 xop
    aes pclmulqdq sha_ni vaes vpclmulqdq gfni rdrand rdseed fsgsbase
    avx avx2 avx_vnni avx512f avx512cd avx512er avx512pf avx512bw avx512dq avx512vl avx512ifma
    avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg avx512_vpopcntdq avx512_bf16 avx512_fp16
    amx_tile amx_int8 amx_bf16
"""
_AARCH64 = """
    fp asimd aes pmull sha1 sha2 sha3 crc32 atomics fphp asimdhp asimdrdm asimddp asimdfhm
    fcma jscvt lrcpc sve sve2 i8mm bf16 svei8mm svebf16
"""
_CODE_FEATURES = frozenset(f"{_X86_64} {_AARCH64}".split())
"""The kernel's names of features that a code generator may use when it compiles for its host."""


@dataclass(frozen=True)
class Cpu:
    """An architecture (`x86_64`) and features of it, by the kernel's names (`avx2`), sorted."""

    architecture: str
    features: tuple[str, ...]

    @staticmethod
    @cache
    def host() -> Cpu:
        """The machine this process runs on."""
        flags = _flags(CPU_INFO.read_text()) if CPU_INFO.is_file() else frozenset[str]()
        return Cpu(platform.machine(), tuple(sorted(flags & _CODE_FEATURES)))

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


def _flags(cpu_info: str) -> frozenset[str]:
    for line in cpu_info.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()
