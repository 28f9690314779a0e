"""The pass `place-waits`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.abi import HOST_SPACE, INPUTS, WORKSPACE, WORKSPACE_OFFSET
from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.device_ops import TransferOp, WaitOp, region_spaces, space_of
from byoc_mlir.dialects.dynamic_buffers import PlaceOp, View
from byoc_mlir.lowering.region_calls import int_attribute
from byoc_mlir.lowering.to_llvm.aliasing import Extent, extent_of


class PlaceWaits(ModulePass):
    """Waits for a device before the host touches the memory of a copy, and before a function
    returns.

    The memory of a copy to a device may be read meanwhile, but not written.

    ```mlir
    byoc.transfer %d, %h : memref<4xf32, "npu">, memref<4xf32>
    func.call @relu(%h, %out) : (memref<4xf32>, memref<4xf32>) -> ()
    // becomes
    byoc.transfer %d, %h : memref<4xf32, "npu">, memref<4xf32>
    byoc.wait "npu"
    func.call @relu(%h, %out) : (memref<4xf32>, memref<4xf32>) -> ()
    ```
    """

    name = "place-waits"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        regions = region_spaces(op)
        functions = {one.sym_name.data: one for one in op.ops if isinstance(one, func.FuncOp)}
        for block in host_blocks(op):
            _Waits(block, regions, functions).place()


@dataclass(frozen=True)
class _Pending:
    """Copy that a device may still be doing, with its memory of the host."""

    device: str
    extent: Extent
    is_to_device: bool


class _Waits:
    """Placer of the waits of a block."""

    def __init__(
        self, block: Block, regions: Mapping[str, str], functions: Mapping[str, func.FuncOp]
    ):
        self._block = block
        self._regions = regions
        self._functions = functions
        self._pending: list[_Pending] = []
        self._busy: dict[str, None] = {}
        """Devices with work that no one has waited for."""

    def place(self) -> None:
        for op in tuple(self._block.ops):
            if isinstance(op, TransferOp):
                self._transfer(op)
            elif isinstance(op, func.CallOp) and _callee(op) in self._regions:
                self._busy[self._regions[_callee(op)]] = None
            elif isinstance(op, func.ReturnOp):
                self._wait(tuple(self._busy), op)
            else:
                self._wait(self._touched(op), op)

    def _transfer(self, op: TransferOp) -> None:
        used = extent_of(op.host_buffer)
        others = (one.device for one in self._pending if used.may_overlap(one.extent))
        self._wait(tuple(device for device in others if device != op.device), op)
        self._pending.append(_Pending(op.device, used, op.is_to_device))
        self._busy[op.device] = None

    def _touched(self, op: Operation) -> tuple[str, ...]:
        """Returns the devices whose pending copies use memory that an op reads or writes."""
        if isinstance(op, PlaceOp | View):
            return ()
        used = [
            (extent_of(value), self._may_write(inner, index))
            for inner in op.walk()
            for index, value in enumerate(inner.operands)
            if isinstance(value.type, MemRefType) and space_of(value.type) == HOST_SPACE
        ]
        used += [(workspace, True) for workspace in self._workspace(op)]
        return tuple(
            one.device
            for one in self._pending
            for extent, written in used
            if extent.may_overlap(one.extent) and (written or not one.is_to_device)
        )

    def _workspace(self, op: Operation) -> Iterator[Extent]:
        """Yields the part of the arena that a region of the host uses besides its arguments."""
        function = self._called(op)
        if function is None or not (size := int_attribute(function, WORKSPACE)):
            return
        arena = self._block.args[0]
        if self._block is self._functions["main"].body.blocks[0]:
            yield Extent(arena, int_attribute(function, WORKSPACE_OFFSET), size)
        else:  # the offset is that in the arena of @main
            yield Extent(arena)

    def _called(self, op: Operation) -> func.FuncOp | None:
        return self._functions.get(_callee(op)) if isinstance(op, func.CallOp) else None

    def _may_write(self, op: Operation, index: int) -> bool:
        function = self._called(op)
        if function is None:
            return True
        if not function.body.blocks:
            return index >= int_attribute(function, INPUTS)
        return _is_written(function.body.blocks[0].args[index])

    def _wait(self, devices: tuple[str, ...], op: Operation) -> None:
        for device in dict.fromkeys(devices):
            wait = WaitOp(device)
            wait.location = op.location
            self._block.insert_op_before(wait, op)
            self._pending = [one for one in self._pending if one.device != device]
            self._busy.pop(device, None)


def _callee(call: func.CallOp) -> str:
    return call.callee.root_reference.data


def _is_written(buffer: SSAValue) -> bool:
    """True if a kernel may write to a buffer: it does more than read it in `linalg` ops."""
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, View):
            if _is_written(op.results[0]):
                return True
        elif not isinstance(op, linalg.GenericOp) or op.operands[use.index] in op.outputs:
            return True
    return False
