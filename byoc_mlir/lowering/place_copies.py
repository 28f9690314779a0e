"""The pass `place-copies`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.device_ops import (
    CopyOp,
    argument_spaces,
    region_spaces,
    result_spaces,
)


class PlaceCopies(ModulePass):
    """Copies values to the memory space in which an op needs them.

    A region of a device needs its operands on the device, any other op on the host. A value is
    copied at most once in each direction; a reshape is a view in both spaces. Between two devices,
    values pass through the host. Arguments and results of @main with `byoc.memory_space` are on
    that device.

    ```mlir
    %0 = func.call @npu_main_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = func.call @npu_main_1(%0, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %1 : tensor<4xf32>
    // becomes
    %d = byoc.copy %x from "host" to "npu" : tensor<4xf32>
    %0 = func.call @npu_main_0(%d) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = func.call @npu_main_1(%0, %d) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %h = byoc.copy %1 from "npu" to "host" : tensor<4xf32>
    func.return %h : tensor<4xf32>
    ```
    """

    name = "place-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        regions = region_spaces(op)
        for block in host_blocks(op):
            _Placer(block, regions).run()


class _Placer:
    """Placer of the copies of a block; `_copies` has the copies of a value by memory space."""

    def __init__(self, block: Block, regions: Mapping[str, str]):
        self._block = block
        self._regions = regions
        function = block.parent_op()
        assert isinstance(function, func.FuncOp)
        self._spaces: dict[SSAValue, str] = dict(
            zip(block.args, argument_spaces(function), strict=True)
        )
        self._results = result_spaces(function)
        self._copies: dict[tuple[SSAValue, str], SSAValue] = {}

    def run(self) -> None:
        for op in tuple(self._block.ops):
            if isinstance(op, tensor.ReshapeOp):
                self._spaces[op.result] = self._space(op.source)
            elif isinstance(op, func.ReturnOp):
                self._move_results(op)
            else:
                self._move_operands(op, needed_space(op, self._regions))
        _drop_unused_views(self._block)

    def _move_operands(self, op: Operation, space: str) -> None:
        for index, operand in enumerate(op.operands):
            if self._space(operand) != space:
                op.operands[index] = self._in_space(operand, space, op)
        self._spaces |= dict.fromkeys(op.results, space)

    def _move_results(self, op: func.ReturnOp) -> None:
        returned = set[SSAValue]()
        for index, (value, space) in enumerate(zip(op.arguments, self._results, strict=True)):
            whole = _viewed(value)
            is_taken = whole in returned or not isinstance(whole.owner, Operation)
            if space != HOST_SPACE and is_taken:
                on_host = self._in_space(value, HOST_SPACE, op)
                made = CopyOp(on_host, HOST_SPACE, space)  # for memory of its own
                made.location = op.location
                self._block.insert_op_before(made, op)
                op.operands[index] = made.result
            else:
                op.operands[index] = self._in_space(value, space, op)
            returned.add(whole)

    def _space(self, value: SSAValue) -> str:
        return self._spaces.get(value, HOST_SPACE)

    def _in_space(self, value: SSAValue, space: str, user: Operation) -> SSAValue:
        """Returns a value in another space, copied before `user` unless it is there already."""
        if self._space(value) == space:
            return value
        if (value, space) not in self._copies:
            self._copies[value, space] = self._copy(value, space, user)
        return self._copies[value, space]

    def _copy(self, value: SSAValue, space: str, user: Operation) -> SSAValue:
        owner = value.owner
        if isinstance(owner, tensor.ReshapeOp):
            made: Operation = owner.clone()
            made.operands[0] = self._in_space(owner.source, space, user)
        elif HOST_SPACE in (space, self._space(value)):
            made = CopyOp(value, self._space(value), space)
        else:
            made = CopyOp(self._in_space(value, HOST_SPACE, user), HOST_SPACE, space)
        made.location = owner.location if isinstance(owner, Operation) else user.location
        self._block.insert_op_before(made, user)
        self._spaces[made.results[0]] = space
        return made.results[0]


def needed_space(op: Operation, regions: Mapping[str, str]) -> str:
    """Returns the memory space in which an op needs its operands, and has its results."""
    if isinstance(op, func.CallOp):
        return regions.get(op.callee.root_reference.data, HOST_SPACE)
    return HOST_SPACE


def _viewed(value: SSAValue) -> SSAValue:
    """Returns the value in whose memory a value is."""
    owner = value.owner
    return _viewed(owner.source) if isinstance(owner, tensor.ReshapeOp) else value


def _drop_unused_views(block: Block) -> None:
    views: Sequence[Operation] = [op for op in block.ops if isinstance(op, tensor.ReshapeOp)]
    for view in reversed(views):
        if not view.results[0].first_use:
            block.erase_op(view)
