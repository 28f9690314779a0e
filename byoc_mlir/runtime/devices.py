"""Devices of loaded programs: constants that programs share, identities, and errors."""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from byoc_mlir.errors import DeviceError
from byoc_mlir.runtime.program import Array, ProgramDevice
from byoc_mlir.runtime.system.forks import ForkSafeLock

_Message = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int32)
_Identity = ctypes.CFUNCTYPE(ctypes.c_char_p)


@dataclass
class _Upload:
    """Constant in a device's memory."""

    address: int
    users: int = 0


class _Uploads:
    """Registry of the constants that the process has on devices, by device and digest.

    The last program that uses a constant frees it.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._known: dict[tuple[str, str], _Upload] = {}

    @contextmanager
    def loading(self, devices: Sequence[ProgramDevice], state: Array) -> Generator[None]:
        """Sets the addresses of constants that other programs have uploaded, and notes those that
        the program uploads in the `with` body.
        """
        if not devices:
            yield
            return
        with self._lock:
            for device in devices:
                self._set_known(device, state)
            yield
            for device in devices:
                self._note(device, state)

    def _set_known(self, device: ProgramDevice, state: Array) -> None:
        for index, digest in enumerate(device.constants):
            known = self._known.get((device.name, digest))
            if known is not None:
                state[device.address_slot(index)] = known.address

    def _note(self, device: ProgramDevice, state: Array) -> None:
        for index, digest in enumerate(device.constants):
            address = int(state[device.address_slot(index)])
            if address:  # otherwise, loading has failed
                known = self._known.setdefault((device.name, digest), _Upload(address))
                known.users += 1
                state[device.owner_slot(index)] = 0

    def release(self, devices: Sequence[ProgramDevice], state: Array) -> None:
        """Prepares the end of a program: it will free the constants that no other one uses."""
        with self._lock:
            for device in devices:
                for index, digest in enumerate(device.constants):
                    known = self._known.get((device.name, digest))
                    if known is not None:
                        known.users -= 1
                        if known.users == 0:
                            del self._known[device.name, digest]
                            state[device.owner_slot(index)] = 1


uploads = _Uploads()


def check_identities(devices: Sequence[ProgramDevice], state: Array) -> None:
    """Checks that the devices of this machine are those that a program was compiled for.

    Raises:
        DeviceError: one is another.
    """
    for device in devices:
        address = int(state[device.identity_slot])
        found = (_Identity(address)() or b"").decode(errors="replace") if address else ""
        if device.identity and found != device.identity:
            raise DeviceError(
                f"the program was compiled for device '{device.name}', {device.identity}; this"
                f" machine has {found or 'none'}: compile the model again here"
            )


def raise_device_error(
    devices: Sequence[ProgramDevice], region: str, what: str, status: int, state: Array
) -> None:
    """Raises the error for a status of a device, or of a region on one; returns for others."""
    for device in devices:
        if region == device.region:
            text = message(device, status, state)
            raise DeviceError(f"could not {what}: device '{device.name}': {text}")
        if region in device.regions:
            text = message(device, status, state)
            raise DeviceError(f"could not {what}: region {region}, device '{device.name}': {text}")


def message(device: ProgramDevice, status: int, state: Array) -> str:
    """Returns the device's text for a status."""
    address = int(state[device.message_slot])
    text = _Message(address)(status) if address else None
    words = text.decode(errors="replace") if text else "no text"
    return f"{words} (status {status})"


def refuse_fork(*_: object) -> NoReturn:
    """Refuses a call in a forked process, which has none of its parent's devices."""
    raise DeviceError(
        "a device cannot be used in a forked process; load the model after the fork, or start"
        " processes with the method 'spawn'"
    )
