"""Two devices in software, made of the same source."""

from __future__ import annotations

from abc import ABC
from pathlib import Path

from byoc_mlir.devices import Device
from fakenpu.library import library


class _InSoftware(Device, ABC):
    """Device whose library is compiled when it is first needed."""

    def library(self) -> Path:
        return library(self.name)


class FakeNpu(_InSoftware):
    """First device."""

    name = "fakenpu"


class FakeNpu2(_InSoftware):
    """Second device, whose memory the first one cannot read either."""

    name = "fakenpu2"
