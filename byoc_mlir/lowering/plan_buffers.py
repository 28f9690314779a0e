"""The pass `plan-buffers`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i8,
    i64,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.abi import ARENA_BYTES, COMPILER, WORKSPACE, WORKSPACE_OFFSET
from byoc_mlir.boundary import boundary
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.kernels.arena import Request, plan_offsets
from byoc_mlir.limits import current_limits
from byoc_mlir.lowering.region_calls import (
    int_attribute,
)
from byoc_mlir.lowering.to_llvm.types import byte_width


@dataclass(frozen=True)
class PlanBuffers(ModulePass):
    """Puts all buffers of a host function, and the workspace of regions it calls, in one arena.

    The arena becomes the first argument, `byoc.arena_bytes` its size. Where a region's workspace
    (`byoc.workspace` on its declaration) was put stands there as `byoc.workspace_offset`.

    ```mlir
    func.func @main(%x: memref<16xf32>, %out: memref<16xf32>) {
      %0 = memref.alloc() : memref<16xf32>
      …
    }
    // becomes
    func.func @main(%arena: memref<64xi8>, %x: memref<16xf32>, %out: memref<16xf32>)
        attributes {byoc.arena_bytes = 64 : i64} {
      %c0 = arith.constant 0 : index
      %0 = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
      …
    }
    ```
    """

    name = "plan-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        regions: dict[str, func.FuncOp] = {}
        for function in op.ops:
            if isinstance(function, func.FuncOp) and COMPILER in function.attributes:
                regions[function.sym_name.data] = function
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.sym_name.data == "main":
                _plan(function, regions)


def _plan(function: func.FuncOp, regions: dict[str, func.FuncOp]) -> None:
    block = function.body.block
    allocs = [op for op in block.ops if isinstance(op, memref.AllocOp)]
    calls, requests = _workspaces(block, regions)
    requests += _lifetimes(block, allocs)
    offsets, total = plan_offsets(requests)
    _check_size(total, allocs)
    for region, offset in zip(calls, offsets, strict=False):
        region.attributes[WORKSPACE_OFFSET] = IntegerAttr(offset, i64)
    function.attributes[ARENA_BYTES] = IntegerAttr(total, i64)
    arena = block.insert_arg(MemRefType(i8, [total]), 0)
    arena.name_hint = "arena"
    type_ = function.function_type
    function.properties["function_type"] = FunctionType.from_lists(
        [arena.type, *type_.inputs], type_.outputs.data
    )
    for alloc, offset in zip(allocs, offsets[len(calls) :], strict=True):
        _replace(alloc, arena, offset)


def _check_size(total: int, allocs: Sequence[memref.AllocOp]) -> None:
    """Refuses too large an arena in the name of the largest buffer's node."""
    largest = max(allocs, key=lambda alloc: _bytes(alloc.memref.type), default=None)
    nodes = node_names(largest) if largest is not None else ()
    with boundary("plan-buffers", ", ".join(nodes) or None):
        current_limits().check("arena_bytes", total, "bytes of the arena")


def _workspaces(
    block: Block, regions: dict[str, func.FuncOp]
) -> tuple[list[func.FuncOp], list[Request]]:
    """The regions called that need workspace, and their requests."""
    spans: dict[str, tuple[int, int]] = {}
    for position, op in enumerate(block.ops):
        if isinstance(op, func.CallOp) and op.callee.root_reference.data in regions:
            symbol = op.callee.root_reference.data
            first, _ = spans.get(symbol, (position, position))
            spans[symbol] = (first, position)
    called = [regions[symbol] for symbol in spans]
    sizes = [int_attribute(region, WORKSPACE) for region in called]
    return called, [Request(size, *span) for size, span in zip(sizes, spans.values(), strict=True)]


def _lifetimes(block: Block, allocs: Sequence[memref.AllocOp]) -> list[Request]:
    root: dict[SSAValue, memref.AllocOp] = {alloc.memref: alloc for alloc in allocs}
    first: dict[Operation, int] = {}
    last: dict[Operation, int] = {}
    for position, op in enumerate(block.ops):
        if isinstance(op, memref.ReinterpretCastOp) and op.source in root:
            root[op.result] = root[op.source]
            continue
        for operand in op.operands:
            if operand in root:
                first.setdefault(root[operand], position)
                last[root[operand]] = position
    return [
        Request(_bytes(alloc.memref.type), first.get(alloc, 0), last.get(alloc, 0))
        for alloc in allocs
    ]


def _bytes(type_: MemRefType) -> int:
    return math.prod(type_.get_shape()) * byte_width(type_.element_type)


def _replace(alloc: memref.AllocOp, arena: SSAValue, offset: int) -> None:
    block = alloc.parent
    assert block is not None
    shift = arith.ConstantOp.from_int_and_width(offset, IndexType())
    view = memref.ViewOp(arena, shift, [], alloc.memref.type)
    for op in (shift, view):
        op.location = alloc.location
    block.insert_ops_before([shift, view], alloc)
    view.result.name_hint = alloc.memref.name_hint
    alloc.memref.replace_all_uses_with(view.result)
    block.erase_op(alloc)
