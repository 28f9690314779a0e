"""The machine that code is generated for, where that is not the one of this process."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from byoc_mlir.errors import ByocError
from byoc_mlir.runtime.system.cpu import BASELINE, Cpu

_TRIPLE = re.compile(rf"(?P<architecture>{'|'.join(BASELINE)})(-\w+)?-linux-(gnu|musl)")


@dataclass(frozen=True)
class Machine:
    """A machine by its triple; its processor has what all processors of the architecture have."""

    triple: str
    cpu: Cpu

    @staticmethod
    def of(triple: str) -> Machine:
        """The machine of a triple, `aarch64-linux-gnu`.

        Raises:
            ByocError: no code is generated for such machines.
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
    """What this thread generates code for; `None` where that is the machine it runs on."""
    return _other.get()


def target_cpu() -> Cpu:
    """What generated code may use: the processor of the other machine, or else `Cpu.host()`.

    Raises:
        ByocError: as `Cpu.host`.
    """
    other = _other.get()
    return Cpu.host() if other is None else other.cpu


def has_vnni() -> bool:
    """Whether generated code may multiply bytes, four by four, with sums of 32 bits."""
    return not {"avx512_vnni", "avx_vnni"}.isdisjoint(target_cpu().features)


@contextmanager
def generating_for(machine: Machine) -> Generator[None]:
    """What this thread compiles inside is for another machine."""
    token = _other.set(machine)
    try:
        yield
    finally:
        _other.reset(token)
