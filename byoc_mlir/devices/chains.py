"""Chains of a device's regions, which the device records once and replays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.abi import DIRECT, QUEUE_SLOT, SLOT_BYTES, status_origin
from byoc_mlir.kernels.builder import POINTER, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder

_RECORDING_SLOT, _FIRST_POINTER_SLOT = 0, 1


@dataclass(frozen=True)
class Chain:
    """Chain of a device's regions in a program."""

    function: str
    """Function of the host that runs it: `i64 (state, context, pointers…)`."""
    device: str
    number: int
    """Number of the device in statuses."""
    context: int
    """First context slot of the device."""
    slot: int
    """First of the chain's slots in the device's context."""
    pointers: int


def chain_code(chain: Chain) -> ModuleOp:
    """Returns the function that runs a chain.

    A run with other addresses than the run before enqueues the regions one by one. The second run
    with the same addresses records them, and from then on the device replays the recording. So
    libraries have loaded their kernels before a recording, and a caller with new addresses each
    time does not pay for recordings.
    """
    code = _ChainCode(chain)
    code.define_record()
    code.define_run()
    return code.module.module


class _ChainCode:
    def __init__(self, chain: Chain):
        self.module = ModuleBuilder()
        self._chain = chain
        self._parameters = (POINTER,) * (2 + chain.pointers)
        self._record = f"{chain.function}_record"

    def define_run(self) -> None:
        """Defines the chain's function."""
        function = self.module.function(self._chain.function, self._parameters, result=i64)
        pointers = function.parameters[2:]
        given = function.stack_array(pointers)
        known = function.slot(self._slots(function), _FIRST_POINTER_SLOT)
        size = function.integer(len(pointers) * SLOT_BYTES)
        differs = function.failed(function.call("memcmp", known, given, size))

        def run_directly() -> Sequence[SSAValue]:
            self._forget(function)
            function.call("memcpy", known, given, size, result=POINTER)
            return [self._call_direct(function)]

        (status,) = function.branch(differs, run_directly, lambda: [self._replay(function)], i64)
        function.finish(status)

    def _replay(self, function: FunctionBuilder) -> SSAValue:
        """Replays the recording, which is made if there is none; returns the model's status."""
        missing = function.compare("eq", self._recording(function), function.null())
        arguments = function.parameters
        (recorded,) = function.branch(
            missing,
            lambda: [function.call(self._record, *arguments, result=i64)],
            lambda: [function.integer(0)],
            i64,
        )

        def replay() -> Sequence[SSAValue]:
            recording = self._recording(function)
            return [self._call_device(function, "replay", self._queue(function), recording)]

        is_recorded = function.compare("eq", recorded, function.integer(0))
        (status,) = function.branch(is_recorded, replay, lambda: [recorded], i64)
        return status

    def define_record(self) -> None:
        """Defines the function that records the chain, and leaves no recording if it fails."""
        function = self.module.function(self._record, self._parameters, result=i64, internal=True)
        begun = self._call_device(function, "record_begin", self._queue(function))

        def record() -> Sequence[SSAValue]:
            status = self._call_direct(function)
            slot = function.slot(self._slots(function), _RECORDING_SLOT)
            ended = self._call_device(function, "record_end", self._queue(function), slot)
            failed = function.compare("ne", status, function.integer(0))
            function.when(failed, lambda: self._forget(function))
            return [function.select(failed, status, ended)]

        has_begun = function.compare("eq", begun, function.integer(0))
        (status,) = function.branch(has_begun, record, lambda: [begun], i64)
        function.finish(status)

    def _slots(self, function: FunctionBuilder) -> SSAValue:
        """Returns the address of the chain's slots."""
        return function.slot(function.parameters[1], self._chain.context + self._chain.slot)

    def _queue(self, function: FunctionBuilder) -> SSAValue:
        return function.pointer(function.parameters[1], self._chain.context + QUEUE_SLOT)

    def _recording(self, function: FunctionBuilder) -> SSAValue:
        return function.pointer(self._slots(function), _RECORDING_SLOT)

    def _forget(self, function: FunctionBuilder) -> None:
        slot = function.slot(self._slots(function), _RECORDING_SLOT)
        forget_recording(function, self._chain.device, slot)

    def _call_direct(self, function: FunctionBuilder) -> SSAValue:
        name = f"{self._chain.function}_{DIRECT}"
        return function.call(name, *function.parameters, result=i64)

    def _call_device(self, function: FunctionBuilder, name: str, *arguments: SSAValue) -> SSAValue:
        """Calls a function of the device; returns the model's status."""
        status = function.call(f"{self._chain.device}_{name}", *arguments)
        wide = function.insert(llvm.ZExtOp(status, i64))
        origin = function.integer(status_origin(self._chain.number))
        failed = function.binary(llvm.OrOp, wide, origin)
        is_failure = function.compare("ne", status, function.integer(0, i32))
        return function.select(is_failure, failed, function.integer(0))


def forget_recording(function: FunctionBuilder, device: str, slot: SSAValue) -> None:
    """Generates code that frees the recording in a slot, if there is one."""

    def forget() -> None:
        function.do(f"{device}_forget", function.load(slot, POINTER))
        function.store(function.null(), slot)

    has_one = function.compare("ne", function.load(slot, POINTER), function.null())
    function.when(has_one, forget)
