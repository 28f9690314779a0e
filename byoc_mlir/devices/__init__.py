"""Devices: processors with memory and a queue of their own, which backends generate code for."""

from __future__ import annotations

from byoc_mlir.devices.base import Device
from byoc_mlir.devices.registry import (
    device_names,
    get_device,
    identities,
    register_device,
)

__all__ = ["Device", "device_names", "get_device", "identities", "register_device"]
