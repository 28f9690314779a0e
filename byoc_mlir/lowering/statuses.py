"""Statuses of host functions: a failing call or check ends a run, and its number is returned.

Checks of values are numbered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import arith, cf, func, llvm, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    i8,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.abi import CHECKS, FOUND_SLOT, QUEUE_SLOT, SLOT_BYTES, STEP, status_origin
from byoc_mlir.dialects.device_ops import TransferOp, WaitOp
from byoc_mlir.dialects.host import CheckOp
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.kernels.ops import load, offset
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.device_traffic import transferred_bytes
from byoc_mlir.lowering.region_calls import RegionCall
from byoc_mlir.lowering.to_llvm.lower_scf_to_cf import flatten


class RunChecks:
    """Checks of a module's host functions, numbered from 1."""

    def __init__(self, functions: Iterable[func.FuncOp]):
        checks = [op for one in functions for op in one.walk() if isinstance(op, CheckOp)]
        self._numbers = {check: number for number, check in enumerate(checks, start=1)}

    def describe(self, module: ModuleOp) -> None:
        """Writes descriptions of the checks on the module, if there are any."""
        if self._numbers:
            module.attributes[CHECKS] = ArrayAttr(map(_description, self._numbers))

    def status(self, builder: Builder, check: CheckOp, context: SSAValue) -> SSAValue:
        """Emits the check; its result is 0, or the check's number if the value is refused.

        The value is stored in the context.
        """
        found = builder.insert(memref.LoadOp.get(check.found, [])).res
        slot = builder.insert(offset(context, FOUND_SLOT * SLOT_BYTES, i64)).result
        builder.insert(llvm.StoreOp(found, slot))
        least, most = (
            _number(builder, limit.value.data, i64) for limit in (check.least, check.most)
        )
        is_enough = builder.insert(arith.CmpiOp(found, least, "sge"))
        is_little = builder.insert(arith.CmpiOp(found, most, "sle"))
        is_within = builder.insert(arith.AndIOp(is_enough, is_little))
        good, bad = (_number(builder, status, i64) for status in (0, self._numbers[check]))
        return builder.insert(arith.SelectOp(is_within, good, bad)).result


def _description(check: CheckOp) -> DictionaryAttr:
    return DictionaryAttr(
        {
            "node": StringAttr(", ".join(node_names(check))),
            "what": check.what,
            "least": check.least,
            "most": check.most,
        }
    )


def _number(builder: Builder, value: int, type_: IntegerType) -> SSAValue:
    return builder.insert(arith.ConstantOp.from_int_and_width(value, type_)).result


_POINTER = LLVMPointerType()


@dataclass(frozen=True)
class PlacedRegion:
    """Region, or device, with its ranges of slots; its `number` counts from 1."""

    number: int
    call: RegionCall
    state: int
    context: int
    workspace: int
    arena_slot: int | None = None
    """Slot of the context with the arena that holds its workspace; `None` for the host's arena."""


class Statuses:
    """Rewriter of host functions so that they return a status.

    They get the arguments %state and %context, and return an `i64` status. A function returns early
    after a failing call of a region or of another such function, and after a failing check.
    """

    def __init__(
        self,
        regions: Sequence[PlacedRegion],
        devices: Mapping[str, PlacedRegion],
        functions: dict[str, func.FuncOp],
        checks: RunChecks,
    ):
        self.functions = functions
        self._checks = checks
        self._devices = devices
        self._regions = {region.call.symbol: region for region in regions}
        self._known = {*self._regions, *functions}

    def thread(self, function: func.FuncOp) -> None:
        """Rewrites a function; its control flow becomes blocks, so that a failure can leave it."""
        flatten(function.body)
        old = list(function.body.blocks)
        slots = _take_slots(function)
        failure = self._failure_block(function, slots)
        blocks = [new for block in old for new in self._checked(block, slots, failure)]
        if len(blocks) == len(old):
            return
        for block in old:
            function.body.detach_block(block)
        function.body.add_block([*blocks, failure])

    def _failure_block(self, function: func.FuncOp, slots: tuple[SSAValue, SSAValue]) -> Block:
        """Returns the block that returns a failing status.

        It waits for the function's devices, which may still use the caller's memory, and forgets
        what failed on them: the next run begins with an empty queue.
        """
        failure = Block(arg_types=[i64])
        builder = Builder(InsertPoint.at_end(failure))
        waits = [op.device.data for op in function.walk() if isinstance(op, WaitOp)]
        for name in dict.fromkeys(waits):
            queue = self._queue(builder, self._devices[name], slots)
            builder.insert(func.CallOp(f"{name}_wait", [queue], [i32]))
        builder.insert(func.ReturnOp(failure.args[0]))
        return failure

    def _queue(
        self, builder: Builder, device: PlacedRegion, slots: tuple[SSAValue, SSAValue]
    ) -> SSAValue:
        _, context = _own_slots(builder, slots, device)
        return loaded_slot(builder, context, QUEUE_SLOT)

    def _checked(
        self, block: Block, slots: tuple[SSAValue, SSAValue], failure: Block
    ) -> list[Block]:
        """Splits a block after each op that may fail."""
        blocks = [block]
        for op in in_time(block.ops):
            builder = Builder(InsertPoint.at_end(blocks[-1]))
            match op:
                case func.CallOp() if op.callee.root_reference.data in self._known:
                    status, number = self._call(builder, op, slots)
                case TransferOp() | WaitOp():
                    status, number = self._call_device(builder, op, slots)
                case CheckOp():
                    status, number = self._checks.status(builder, op, slots[1]), 0
                case _:
                    if op.parent_block() is not blocks[-1]:
                        op.detach()
                        blocks[-1].add_op(op)
                    if isinstance(op, func.ReturnOp):
                        success = arith.ConstantOp.from_int_and_width(0, i64)
                        Rewriter.replace_op(op, [success, func.ReturnOp(success)])
                    continue
            op.detach()
            op.erase()
            blocks.append(Block())
            branch_on_failure(builder, status, number, blocks[-1], failure)
        return blocks

    def _call(
        self, builder: Builder, call: func.CallOp, slots: tuple[SSAValue, SSAValue]
    ) -> tuple[SSAValue, int]:
        """Emits a call with slots; returns the status, and the region's number or 0."""
        symbol = call.callee.root_reference.data
        region = self._regions.get(symbol)
        if region is None:
            new = func.CallOp(symbol, [*slots, *call.arguments], [i64])
        else:
            arguments = [*self._device_arguments(builder, region, slots), *call.arguments]
            own_slots = _own_slots(builder, slots, region)
            new = func.CallOp(region.call.function, [*own_slots, *arguments], [i32])
            if region.call.space in self._devices:
                _mark_step(new, region.call.symbol, region.call.space, 0)
        new.location = call.location
        return builder.insert(new).results[0], 0 if region is None else region.number

    def _device_arguments(
        self, builder: Builder, region: PlacedRegion, slots: tuple[SSAValue, SSAValue]
    ) -> list[SSAValue]:
        """Loads a device region's queue and the addresses of its constants on the device."""
        device = self._devices.get(region.call.space)
        if device is None:
            return []
        state, _ = _own_slots(builder, slots, device)
        return [
            self._queue(builder, device, slots),
            *(loaded_slot(builder, state, slot) for slot in region.call.uploaded),
        ]

    def _call_device(
        self, builder: Builder, op: TransferOp | WaitOp, slots: tuple[SSAValue, SSAValue]
    ) -> tuple[SSAValue, int]:
        """Emits the call of a device's function; returns the status and the device's number."""
        name = op.device.data if isinstance(op, WaitOp) else op.device
        device, size = self._devices[name], 0
        arguments = [self._queue(builder, device, slots)]
        if isinstance(op, TransferOp):
            size = transferred_bytes(op)
            arguments += [op.destination, op.source, _number(builder, size, i64)]
        call = builder.insert(func.CallOp(device_function(op), arguments, [i32]))
        call.location = op.location
        _mark_step(call, _described(op), name, size)
        return call.results[0], device.number


def device_function(op: TransferOp | WaitOp) -> str:
    """Returns the function of the device that an op calls: `npu_copy_in`."""
    if isinstance(op, WaitOp):
        return f"{op.device.data}_wait"
    return f"{op.device}_{'copy_in' if op.is_to_device else 'copy_out'}"


def _described(op: TransferOp | WaitOp) -> str:
    """Returns the name of a step in profiles."""
    if isinstance(op, WaitOp):
        return f"wait for {op.device.data}"
    return f"copy {'to' if op.is_to_device else 'from'} {op.device}"


def _mark_step(call: func.CallOp, implementation: str, device: str, size: int) -> None:
    """Marks a call as a step of a device in profiles."""
    call.attributes[STEP] = DictionaryAttr(
        {
            "implementation": StringAttr(implementation),
            "layout": StringAttr(""),
            "device": StringAttr(device),
            "bytes": IntegerAttr(size, i64),
        }
    )


def _own_slots(
    builder: Builder, slots: tuple[SSAValue, SSAValue], region: PlacedRegion
) -> tuple[SSAValue, SSAValue]:
    """Returns the region's part of state and context."""
    state, context = slots
    return _slot(builder, state, region.state), _slot(builder, context, region.context)


def loaded_slot(builder: Builder, base: SSAValue, index: int) -> SSAValue:
    """Loads the pointer in a slot."""
    return builder.insert(load(_slot(builder, base, index), _POINTER)).results[0]


def _take_slots(function: func.FuncOp) -> tuple[SSAValue, SSAValue]:
    """Adds %state and %context as the first arguments of a function that returns a status."""
    entry = function.body.blocks[0]
    state = entry.insert_arg(_POINTER, 0)
    context = entry.insert_arg(_POINTER, 1)
    state.name_hint, context.name_hint = "state", "context"
    inputs = [_POINTER, _POINTER, *function.function_type.inputs]
    function.properties["function_type"] = FunctionType.from_lists(inputs, [i64])
    function.properties.pop("arg_attrs", None)
    function.properties.pop("res_attrs", None)
    function.properties["sym_visibility"] = StringAttr("private")
    return state, context


def branch_on_failure(
    builder: Builder, status: SSAValue, number: int, following: Block, failure: Block
) -> None:
    """Branches to `following` for a status of 0, else to `failure` with the model's status.

    Args:
        number: number of the region with the `i32` status; 0 for the `i64` status of a host
            function.
    """
    code, kind = status, i64
    if number:
        kind = i32
        wide = builder.insert(arith.ExtUIOp(status, i64))
        origin = _number(builder, status_origin(number), i64)
        code = builder.insert(arith.OrIOp(wide, origin)).result
    failed = builder.insert(arith.CmpiOp(status, _number(builder, 0, kind), "ne"))
    builder.insert(cf.ConditionalBranchOp(failed, failure, [code], following, []))


def _slot(builder: Builder, base: SSAValue, index: int) -> SSAValue:
    return advanced(builder, base, index * SLOT_BYTES)


def advanced(builder: Builder, base: SSAValue, count: int) -> SSAValue:
    if count == 0:
        return base
    return builder.insert(offset(base, count, i8)).result
