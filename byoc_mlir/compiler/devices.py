"""Devices of a compilation: those of its backends, and the constants that are copied to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp

from byoc_mlir import abi
from byoc_mlir.backends import Backend
from byoc_mlir.backends.generate import RegionCode
from byoc_mlir.devices import Device, get_device
from byoc_mlir.devices.registry import identity_of
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.errors import DeviceError
from byoc_mlir.lowering.region_calls import RegionCall, device_arenas
from byoc_mlir.runtime.devices import missing
from byoc_mlir.runtime.program import ProgramDevice, SharedLibrary

if TYPE_CHECKING:
    from byoc_mlir.devices.chains import Chain


def device_of(backend: Backend) -> Device | None:
    """Returns the device of a backend's regions; `None` for the host's memory.

    Raises:
        BackendError: there is no such device, or its package cannot be loaded.
    """
    space = backend.memory_space
    return None if space == abi.HOST_SPACE else get_device(space)


def why_missing(backend: Backend) -> str | None:
    """Returns why this machine lacks the device of a backend, or `None`."""
    device = device_of(backend)
    reason = None if device is None else device.unavailable()
    return None if device is None or reason is None else missing(device.name, reason)


def check_devices(backends: Sequence[Backend]) -> None:
    """Checks that this machine has the backends' devices, before a model is compiled to be loaded.

    Raises:
        DeviceError: it lacks one.
    """
    for backend in backends:
        reason = why_missing(backend)
        if reason is not None:
            raise DeviceError(f"{reason}; compile(load=False) compiles the model without it")


@dataclass(frozen=True)
class Uploads:
    """Devices of a program that has some, with the constants that each region on them uses."""

    constants: dict[str, tuple[Weight, ...]]
    """Constants by device, each once."""
    records: bool
    """True if devices that can record chains of regions do."""

    @staticmethod
    def of(
        codes: Sequence[RegionCode], others: Iterable[str] = (), *, records: bool = True
    ) -> Uploads:
        """Returns the devices and constants of all regions, and other devices."""
        found: dict[str, dict[str, Weight]] = {name: {} for name in others}
        for code in codes:
            if code.space != abi.HOST_SPACE:
                by_digest = found.setdefault(code.space, {})
                by_digest.update((weight.digest, weight) for weight in code.native.constants)
        constants = {name: tuple(found[name].values()) for name in sorted(found)}
        return Uploads(constants, records)

    def slots(self, code: RegionCode) -> tuple[int, ...]:
        """Returns the slots of a region's constants in the state of its device."""
        if code.space == abi.HOST_SPACE:
            return ()
        numbers = {one.digest: number for number, one in enumerate(self.constants[code.space])}
        return tuple(numbers[weight.digest] for weight in code.native.constants)

    def declarations(self) -> Iterator[FuncOp]:
        """Yields the declaration that stands for each device, with its slots and hooks."""
        for name, weights in self.constants.items():
            declaration = FuncOp.external(abi.device_region(name), [], [])
            declaration.attributes[abi.DEVICE] = StringAttr(name)
            if self.records and get_device(name).records:
                declaration.attributes[abi.RECORDS] = UnitAttr()
            slots = abi.device_state_slots(len(weights))
            hooks = tuple(hook.name for hook in abi.HOOKS)
            RegionCall(
                abi.device_region(name), slots, abi.DEVICE_CONTEXT_SLOTS, 0, name, (), hooks
            ).attach(declaration)
            yield declaration

    def modules(self, host: ModuleOp) -> Iterator[ModuleOp]:
        """Yields the code of each device for the linked program."""
        from byoc_mlir.devices.chains import chain_code
        from byoc_mlir.devices.code import device_code  # most programs use no device

        arenas, chains = device_arenas(host), tuple(_chains(host))
        yield from map(chain_code, chains)
        for name, weights in self.constants.items():
            recordings = [chain.slot for chain in chains if chain.device == name]
            yield device_code(name, weights, arenas.get(name, 0), recordings)
            own = get_device(name).module()
            if own is not None:
                yield own

    def devices(self, codes: Sequence[RegionCode], host: ModuleOp) -> Iterator[ProgramDevice]:
        """Yields what the runtime needs to know of each device."""
        slot = sum(code.native.state_slots for code in codes)
        arenas = device_arenas(host)
        for name, weights in self.constants.items():
            device = get_device(name)
            library = device.library()
            yield ProgramDevice(
                name,
                f"{type(device).__module__}:{type(device).__qualname__}",
                identity_of(device),
                library if isinstance(library, SharedLibrary) else SharedLibrary(library),
                tuple(code.symbol for code in codes if code.space == name),
                slot,
                tuple(weight.digest for weight in weights),
                sum(weight.data.nbytes for weight in weights),
                arenas.get(name, 0),
                device.dlpack_type,
            )
            slot += abi.device_state_slots(len(weights))


def _chains(host: ModuleOp) -> Iterator[Chain]:
    """Yields the chains that `add-entry-points` described."""
    found = host.attributes.get(abi.CHAINS)
    if not isinstance(found, DictionaryAttr):
        return
    from byoc_mlir.devices.chains import Chain

    for function, attribute in cast(dict[str, DictionaryAttr], found.data).items():
        fields = dict(attribute.data)
        device = cast(StringAttr, fields.pop("device")).data
        numbers = {name: cast(IntegerAttr, one).value.data for name, one in fields.items()}
        yield Chain(function, device, **numbers)
