"""Machine for which code is generated, if it is another one than this process's machine."""

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


@contextmanager
def generating_for(machine: Machine) -> Generator[None]:
    """Sets the machine that this thread compiles for in the `with` body."""
    token = _other.set(machine)
    try:
        yield
    finally:
        _other.reset(token)
