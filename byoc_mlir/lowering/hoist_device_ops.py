"""The pass `hoist-device-ops`."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.device_ops import CopyOp, region_spaces
from byoc_mlir.lowering.place_copies import needed_space


class HoistDeviceOps(ModulePass):
    """Moves ops so that devices work while the host does.

    An op of a device comes as soon as its operands exist, and an op of the host that reads a
    device's result comes after those that read none. Other ops of the host keep their order.

    ```mlir
    %0 = "host op"(%x)
    %d = byoc.copy %x from "host" to "npu" : tensor<4xf32>
    %1 = func.call @npu_main_0(%d) : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %d = byoc.copy %x from "host" to "npu" : tensor<4xf32>
    %1 = func.call @npu_main_0(%d) : (tensor<4xf32>) -> tensor<4xf32>
    %0 = "host op"(%x)
    ```
    """

    name = "hoist-device-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        regions = region_spaces(op)
        for block in host_blocks(op):
            if not any(isinstance(inner, CopyOp) for inner in block.ops):
                continue
            ordered = _Scheduler(block, regions).order()
            for moved in ordered:
                moved.detach()
            block.add_ops(ordered)


class _Scheduler:
    """Scheduler of a block's ops.

    `_ready` has the ops whose operands exist, by kind: of a device, of the host, and of the host
    after a wait. `_in_flight` has the values that a device may still be computing.
    """

    def __init__(self, block: Block, regions: Mapping[str, str]):
        self._ops = tuple(block.ops)
        self._regions = regions
        self._position = {op: position for position, op in enumerate(self._ops)}
        self._waiting = {op: self._dependences(op) for op in self._ops}
        self._users: dict[Operation, list[Operation]] = {}
        for op, needed in self._waiting.items():
            for other in needed:
                self._users.setdefault(other, []).append(op)
        self._device: list[int] = []
        self._host: list[int] = []
        self._after_wait: list[int] = []
        self._in_flight: set[SSAValue] = set()

    def order(self) -> list[Operation]:
        """Returns the ops in their new order."""
        for op in self._ops:
            if not self._waiting[op]:
                self._note_ready(op)
        ordered: list[Operation] = []
        while len(ordered) < len(self._ops):
            ordered.append(self._next())
        return ordered

    def _dependences(self, op: Operation) -> set[Operation]:
        """Returns the ops that come before an op: those of its operands, and those with effects."""
        needed = {
            value.owner
            for inner in op.walk()
            for value in inner.operands
            if isinstance(value.owner, Operation) and value.owner in self._position
        }
        if not op.results:  # a check, or the return
            needed |= {other for other in self._ops[: self._position[op]] if not other.results}
        if op is self._ops[-1]:
            needed |= set(self._ops[:-1])
        return needed - {op}

    def _note_ready(self, op: Operation) -> None:
        heapq.heappush(self._queue(op), self._position[op])

    def _queue(self, op: Operation) -> list[int]:
        if isinstance(op, CopyOp) or needed_space(op, self._regions) != HOST_SPACE:
            return self._device
        if isinstance(op, tensor.ReshapeOp):  # a view, which reads nothing
            return self._device
        return self._after_wait if self._reads_device(op) else self._host

    def _reads_device(self, op: Operation) -> bool:
        return any(value in self._in_flight for inner in op.walk() for value in inner.operands)

    def _next(self) -> Operation:
        if self._device:
            return self._emit(heapq.heappop(self._device))
        if not self._host:
            self._in_flight.clear()
            self._host, self._after_wait = self._after_wait, []
        return self._emit(heapq.heappop(self._host))

    def _emit(self, position: int) -> Operation:
        op = self._ops[position]
        if isinstance(op, CopyOp) or self._views_device(op):
            self._in_flight.update(op.results)
        for user in self._users.get(op, ()):
            self._waiting[user].discard(op)
            if not self._waiting[user]:
                self._note_ready(user)
        return op

    def _views_device(self, op: Operation) -> bool:
        views: Sequence[SSAValue] = op.operands[:1] if isinstance(op, tensor.ReshapeOp) else ()
        return any(value in self._in_flight for value in views)
