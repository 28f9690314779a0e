"""Two devices in software, made of the same source."""

from __future__ import annotations

from abc import ABC
from pathlib import Path

from byoc_mlir.backends.c_compiler import no_c_compiler
from byoc_mlir.devices import Device
from fakenpu.control import Control
from fakenpu.library import library


class _InSoftware(Device, ABC):
    """Device whose library is compiled when it is first needed."""

    def library(self) -> Path:
        return library(self.name)

    def unavailable(self) -> str | None:
        reason = no_c_compiler()
        if reason is None and not self.identity():
            return "this machine has none; unset FAKENPU_ABSENT"
        return reason

    def describe(self) -> str:
        return self.identity()

    def identity(self) -> str:
        return Control(self.name).identity()

    def capacity(self) -> int:
        return 1 << 30


class FakeNpu(_InSoftware):
    """First device."""

    name = "fakenpu"


class FakeNpu2(_InSoftware):
    """Second device, whose memory the first one cannot read either."""

    name = "fakenpu2"
