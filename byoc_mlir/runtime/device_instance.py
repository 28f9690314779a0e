"""Loaded programs that use devices, or have inputs and outputs in the memory of devices."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.errors import DeviceMemoryError, ExecutionError, InvalidInputError
from byoc_mlir.limits import DEFAULT_LIMITS, Limits
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.runtime import devices
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.call import Call
from byoc_mlir.runtime.context import Context
from byoc_mlir.runtime.device_array import (
    DeviceAddress,
    DeviceArray,
    DeviceFunctions,
    is_on_device,
)
from byoc_mlir.runtime.instance import Instance
from byoc_mlir.runtime.profiled import TimedPart
from byoc_mlir.runtime.program import Array, LoadedCode, Program, ProgramDevice
from byoc_mlir.runtime.system.memory import return_freed_memory
from byoc_mlir.tensors import TensorInfo

_Made = TypeVar("_Made")


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


_uploads = _Uploads()


def device_instance(program: Program, limits: Limits, *, load: bool) -> Instance:
    """Returns a loaded program that uses devices; arguments and errors are those of `Instance`."""
    infos = (*program.inputs, *program.outputs)
    is_on_host = all(info.space == HOST_SPACE for info in infos)
    return (DeviceInstance if is_on_host else ResidentInstance)(program, limits, load=load)


class DeviceInstance(Instance):
    """Loaded program that uses devices; its constants on them are shared with other programs."""

    def __init__(self, program: Program, limits: Limits = DEFAULT_LIMITS, *, load: bool = True):
        super().__init__(program, limits, load=False)
        if load:
            _with_idle_memory(self._load_program)

    @property
    def device_functions(self) -> Mapping[str, DeviceFunctions]:
        """Returns the functions of the program's devices by name; loads the program if needed."""
        with self._lock:
            if self._release is None:
                self._load_program()
        return self._device_functions

    @property
    def held_bytes(self) -> int:
        """Returns the bytes of the program, with its arenas and constants on devices."""
        used = self.program.devices
        arenas = len(self._all) * sum(device.arena_bytes for device in used)
        return super().held_bytes + arenas + sum(device.constant_bytes for device in used)

    def close_idle(self) -> bool:
        """Closes the contexts that no call uses, with their memory on devices; returns true if
        there were any.
        """
        with self._lock:
            closed = False
            while (context := self._idle()) is not None:
                self._close(self._state_address, context.slots_address)
                self._all.remove(context)
                closed = True
            return closed

    def _load_program(self) -> None:
        """Loads the program, and opens a context: so a device without memory for it is known
        now.
        """
        with devices.explaining_absence(self.program.devices):
            try:
                super()._load_program()
                devices.check_identities(self._device_functions)
                self._free.append(self._opened())
            except ExecutionError:
                if self._release is not None:
                    self._release()
                self._release = None
                raise

    def _load_regions(self) -> None:
        used = self.program.devices
        with _uploads.loading(used, self._state):
            status = self._load(self._state_address)
            self._device_functions = {
                device.name: DeviceFunctions(device, self._state, self._native) for device in used
            }
            if status:
                self._fail_to_load(status)

    def _releasing(self) -> tuple[Callable[..., None], *tuple[Any, ...]]:
        used = self.program.devices
        return _release, used, self._native, self._close, self._unload, self._state, self._all

    def _new_context(self) -> Context:
        return _with_idle_memory(super()._new_context)

    def _resolved(self, name: str, libraries: Sequence[ctypes.CDLL]) -> int:
        try:
            return super()._resolved(name, libraries)
        except ExecutionError:
            devices.refuse_incomplete(self.program.devices, name)
            raise

    def _fail_region(self, region: str, what: str, reason: int) -> NoReturn:
        devices.fail_on_device(self._device_functions, region, what, reason)
        super()._fail_region(region, what, reason)

    def _use_in_fork(self) -> None:
        """Refuses calls: a child has none of its parent's devices."""
        self._open = self._run = devices.refuse_fork
        if self._release is not None:
            self._release.detach()


class ResidentInstance(DeviceInstance):
    """Loaded program with inputs or outputs in the memory of devices.

    An array of the host for such an input is copied first.
    """

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array] | None = None,
        call: Call | None = None,
        parts: list[TimedPart] | None = None,
    ) -> list[Array]:
        given = list(map(self._placed, self.program.inputs, inputs))
        if outputs is None:
            kinds = dict(zip(self.output_names, self.outputs, strict=True))
            outputs = list(self.new_outputs(kinds).values())
        found = super().run(given, outputs, call, parts)
        return [getattr(one, "owner", one) for one in found]

    def new_outputs(self, kinds: Mapping[str, tuple[Shape, np.dtype[Any]]]) -> dict[str, Array]:
        spaces = {info.name: info.space for info in self.program.outputs}
        made = super().new_outputs(
            {name: kind for name, kind in kinds.items() if spaces[name] == HOST_SPACE}
        )
        for name in kinds.keys() - made.keys():
            functions = self.device_functions[spaces[name]]
            made[name] = DeviceArray.new(functions, *kinds[name]).handle()
        return {name: made[name] for name in kinds}

    def handles(self, out: Mapping[str, Any]) -> Mapping[str, Any]:
        infos = {info.name: info for info in self.program.outputs}
        return {name: self._handle(infos[name], one) for name, one in out.items()}

    def _handle(self, info: TensorInfo, array: Any) -> Any:
        if info.space == HOST_SPACE:
            return array
        if is_on_device(array) and (found := DeviceArray.imported(array)).is_on(
            self.device_functions[info.space].device
        ):
            return found.handle()
        raise InvalidInputError(
            f"out: '{info.name}' must be an array on device '{info.space}', found"
            f" {type(array).__name__}"
        )

    def placed(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        """Copies arrays for inputs to the memory in which the program takes them."""
        infos = {info.name: info for info in self.program.inputs}
        placed = {name: self._placed(infos[name], one) for name, one in arrays.items()}
        return {name: getattr(one, "owner", one) for name, one in placed.items()}

    def _placed(self, info: TensorInfo, array: Array) -> Array:
        if info.space == HOST_SPACE:
            return array
        functions = self.device_functions[info.space]
        if not isinstance(array, DeviceAddress):
            return DeviceArray.copied(functions, array).handle()
        if not array.owner.is_on(functions.device):
            raise InvalidInputError(
                f"input '{info.name}' must be on device '{info.space}', found {array.owner!r}"
            )
        return array


def _with_idle_memory(make: Callable[[], _Made]) -> _Made:
    """Calls a function; if a device has too little memory, closes the idle contexts of all programs
    on devices, and calls it once more.
    """
    try:
        return make()
    except DeviceMemoryError:
        used = [one for one in tuple(Instance.instances) if isinstance(one, DeviceInstance)]
        if not any([one.close_idle() for one in used]):
            raise
    return make()


def _release(
    used: Sequence[ProgramDevice],
    native: LoadedCode,
    close: Callable[..., int],
    unload: Callable[..., int],
    state: Array,
    contexts: list[Context],
) -> None:
    """Frees what a program has, but not its code: arrays on the devices may need it to free their
    memory.
    """
    for context in contexts:
        close(int(state.ctypes.data), context.slots_address)
    _uploads.release(used, state)
    unload(int(state.ctypes.data))
    contexts.clear()
    return_freed_memory()
