"""The pass `plan-buffers`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import index
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i8,
    i64,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir import abi
from byoc_mlir.boundary import boundary
from byoc_mlir.dialects.device_ops import in_space, region_space, region_spaces, space_of
from byoc_mlir.dialects.dynamic_buffers import Alloc, PlaceOp, SizeOp, View, buffer_sizes
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.shape import ShapeAttr, asked, hint, is_symbolic, names_in
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.dims import Dim, Size, greatest, largest
from byoc_mlir.errors import UndecidedSizeError
from byoc_mlir.kernels.arena import BufferRequest, DynamicRequest, plan_offsets, plan_slots
from byoc_mlir.limits import current_limits, in_time
from byoc_mlir.lowering.control_flow import called_symbols
from byoc_mlir.lowering.region_calls import device_arenas, int_attribute, set_device_arenas
from byoc_mlir.lowering.to_llvm.types import byte_width

Group: TypeAlias = tuple[str, ...]
"""Symbols of the functions of a control flow op, which calls one of them."""


class PlanBuffers(ModulePass):
    """Puts all buffers of @main, and the workspaces of the regions that it calls, in one arena.

    The arena becomes the first argument, and `byoc.arena_bytes` is its size. A region's declaration
    has `byoc.workspace`, the size of its workspace, and gets `byoc.workspace_offset`. Another
    function of the host (a branch or a loop's body) gets a part of its caller's arena; the branches
    of one op share a part. Each device has an arena of its own: an argument after the host's, with
    its size in `byoc.device_arenas`.

    ```mlir
    func.func @main(%x: memref<16xf32>, %out: memref<16xf32>) {
      %0 = memref.alloc() : memref<16xf32>
      …
    }
    // becomes
    func.func @main(%arena: memref<64xi8>, %x: memref<16xf32>, %out: memref<16xf32>)
        attributes {byoc.arena_bytes = 64 : i64} {
      %c0 = arith.constant 0 : index
      %0 = host.place %arena[%c0] : memref<64xi8> to memref<16xf32>
      …
    }
    ```
    """

    name = "plan-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with asking_of(op):
            functions = {
                function.sym_name.data: function
                for function in op.ops
                if isinstance(function, func.FuncOp)
            }
            if "main" in functions:
                spaces = sorted(set(region_spaces(op).values()))
                for space in (*reversed(spaces), abi.HOST_SPACE):  # the host's arena comes first
                    planner = _Planner(functions, space)
                    planner.plan("main")
                    planner.place_workspaces("main", 0)


class _Planner:
    """Planner of the functions' memory in one space, which plans callees before their callers.

    `places` maps functions to the offsets of their callees' memory. Callees of one control flow op
    are a group with one offset.
    """

    def __init__(self, functions: Mapping[str, func.FuncOp], space: str):
        self._functions = functions
        self._space = space
        self._places: dict[str, dict[str, Size]] = {}
        self._group_of: dict[str, tuple[str, Group]] = {}

    def plan(self, symbol: str) -> None:
        """Plans the memory of a function and of all its callees."""
        function = self._functions[symbol]
        block = function.body.block
        allocs = [op for op in block.ops if isinstance(op, Alloc) and self._is_here(op)]
        groups = self._groups(symbol)
        spans = _lifetimes(block, allocs)
        requests = [(self._most(group), span) for group, span in groups.items()]
        requests += [(self._bytes(alloc), spans[alloc]) for alloc in allocs]
        offsets, total = _planned(requests)
        _check_size(hint(total), allocs)
        places = zip(groups, offsets, strict=False)
        self._places[symbol] = {callee: offset for group, offset in places for callee in group}
        arena = _add_arena(function, total, self._space)
        for call, callee in called_symbols(function):
            if self._is_host(callee):
                self._pass_arena(call, arena, self._places[symbol][callee], self._size(callee))
        for alloc, offset in zip(allocs, offsets[len(groups) :], strict=True):
            shift = _index(offset)
            _replace(alloc, [shift, PlaceOp(arena, shift.results[0], alloc.memref.type)])

    def place_workspaces(self, symbol: str, base: Size) -> None:
        """Records the workspace offset of each region that a function calls.

        The function's own memory begins at `base` in the arena of the program.
        """
        for callee, offset in self._places[symbol].items():
            if self._is_host(callee):
                self.place_workspaces(callee, base + offset)
            else:
                self._place_workspace(callee, base + offset)

    def _place_workspace(self, symbol: str, offset: Size) -> None:
        if isinstance(offset, Dim):
            raise UndecidedSizeError(
                f"@{symbol} needs memory at a static offset, beside buffers of symbolic sizes;"
                " specialise-dims makes the sizes static"
            )
        self._functions[symbol].attributes[abi.WORKSPACE_OFFSET] = IntegerAttr(offset, i64)

    def _groups(self, symbol: str) -> dict[Group, tuple[int, int]]:
        """Returns the callees of a function that need memory, with the positions of their first and
        last call.

        The possible callees of one op form a group.
        """
        spans: dict[Group, tuple[int, int]] = {}
        for position, op in enumerate(self._functions[symbol].body.block.ops):
            callees = [callee for _, callee in called_symbols(op)]
            group = tuple(filter(self._needs_memory, callees))
            if group:
                self._note(symbol, group)
                first, _ = spans.get(group, (position, position))
                spans[group] = (first, position)
        return spans

    def _note(self, caller: str, group: Group) -> None:
        """Checks that a group's functions have no other caller, since their memory has one
        offset.
        """
        for callee in group:
            known, _ = found = self._group_of.setdefault(callee, (caller, group))
            if found != (caller, group) or callee == "main":
                raise PassFailedException(
                    f"@{callee} is called by @{known}, and once more by @{caller}; accepted is one"
                    " caller, since its memory has one offset"
                )

    def _most(self, group: Group) -> Size:
        """Returns the memory that the largest function of a group needs; plans the host functions
        in it.
        """
        for callee in group:
            if self._is_host(callee) and callee not in self._places:
                self.plan(callee)
        return largest(*map(self._size, group))

    def _pass_arena(self, call: func.CallOp, arena: SSAValue, offset: Size, size: Size) -> None:
        """Passes to a callee its part of the caller's arena."""
        shift = _index(offset)
        view = PlaceOp(arena, shift.results[0], _arena_type(size, self._space))
        for op in (shift, view):
            op.location = call.location
        Rewriter.insert_op([shift, view], InsertPoint.before(call))
        call.operands = [view.results[0], *call.operands]

    def _bytes(self, alloc: Alloc) -> Size:
        """Returns the size of a buffer; the maximum size if it depends on a symbol that a function
        binds.
        """
        size = _bytes(alloc.memref.type)
        return size if names_in([size]).isdisjoint(asked().bound) else _most(size)

    def _needs_memory(self, symbol: str) -> bool:
        return self._is_region(symbol) or self._is_host(symbol)

    def _is_here(self, alloc: Alloc) -> bool:
        return space_of(alloc.memref.type) == self._space

    def _is_region(self, symbol: str) -> bool:
        function = self._functions.get(symbol)
        if function is None or abi.COMPILER not in function.attributes:
            return False
        return region_space(function) == self._space

    def _is_host(self, symbol: str) -> bool:
        function = self._functions.get(symbol)
        if function is None or not function.body.blocks:
            return False
        return function.attributes.keys().isdisjoint({abi.COMPILER, abi.KERNEL})

    def _size(self, symbol: str) -> Size:
        function = self._functions[symbol]
        if not self._is_host(symbol):
            return int_attribute(function, abi.WORKSPACE)
        if self._space != abi.HOST_SPACE:
            return device_arenas(function)[self._space]
        size = function.attributes.get(abi.ARENA_SIZE)
        return (
            size.data[0]
            if isinstance(size, ShapeAttr)
            else int_attribute(function, abi.ARENA_BYTES)
        )


def _planned(requests: Sequence[tuple[Size, tuple[int, int]]]) -> tuple[Sequence[Size], Size]:
    """Returns the offsets and the total size of buffers with the given sizes and lifetimes."""
    if not is_symbolic(size for size, _ in requests):
        return plan_offsets([BufferRequest(index(size), *span) for size, span in requests])
    return plan_slots([DynamicRequest(size, hint(size), *span) for size, span in requests])


def _index(size: Size) -> Operation:
    if isinstance(size, Dim):
        return SizeOp(size)
    return arith.ConstantOp.from_int_and_width(size, IndexType())


def _arena_type(size: Size, space: str) -> MemRefType:
    return in_space(MemRefType(i8, [DYNAMIC_INDEX if isinstance(size, Dim) else size]), space)


def _add_arena(function: func.FuncOp, total: Size, space: str) -> SSAValue:
    """Adds the arena of a space to a function as its first argument."""
    if space == abi.HOST_SPACE:
        function.attributes[abi.ARENA_BYTES] = IntegerAttr(hint(total), i64)
        if isinstance(total, Dim):
            function.attributes[abi.ARENA_SIZE] = ShapeAttr((total,))
    else:
        known = device_arenas(function)
        set_device_arenas(function, {space: index(total), **known})
    arena = function.body.block.insert_arg(_arena_type(total, space), 0)
    arena.name_hint = "arena" if space == abi.HOST_SPACE else f"{space}_arena"
    function.update_function_type()
    return arena


def _check_size(total: int, allocs: Sequence[Alloc]) -> None:
    """Checks the arena's size against the limit; the error names the node of the largest buffer."""
    largest = max(allocs, key=lambda alloc: hint(_bytes(alloc.memref.type)), default=None)
    nodes = node_names(largest) if largest is not None else ()
    with boundary("plan-buffers", ", ".join(nodes) or None):
        current_limits().check("arena_bytes", total, "bytes of the arena")


def _lifetimes(block: Block, allocs: Sequence[Alloc]) -> dict[Alloc, tuple[int, int]]:
    """Returns the positions of the first and last op that need each buffer.

    The result of a loop may be in any of the buffers that the loop takes.
    """
    roots: dict[SSAValue, set[Alloc]] = {}
    first: dict[Operation, int] = {}
    last: dict[Operation, int] = {}
    for position, op in enumerate(in_time(block.ops)):
        taken = set[Alloc]().union(*(roots.get(value, ()) for value in op.operands))
        made = {op} if isinstance(op, Alloc) else taken
        roots |= {result: made for result in op.results if isinstance(result.type, MemRefType)}
        if isinstance(op, View):
            continue
        for operand in (operand for inner in op.walk() for operand in inner.operands):
            for alloc in roots.get(operand, ()):
                first.setdefault(alloc, position)
                last[alloc] = position
    return {alloc: (first.get(alloc, 0), last.get(alloc, 0)) for alloc in allocs}


def _most(size: Size) -> Size:
    """Returns the maximum of a size over all values of the symbols that functions bind."""
    facts = asked()
    if names_in([size]) <= facts.bound.keys():
        _, most = facts.bounds(size)
        return int(most)
    return greatest(size, {name: facts.ranges[name] for name in facts.bound})


def _bytes(type_: MemRefType) -> Size:
    return math.prod(buffer_sizes(type_)) * byte_width(type_.element_type)


def _replace(alloc: Alloc, ops: Sequence[Operation]) -> None:
    """Replaces an allocation by ops; the last one returns the buffer."""
    for op in ops:
        op.location = alloc.location
    Rewriter.insert_op(ops, InsertPoint.before(alloc))
    Rewriter.replace_op(alloc, (), ops[-1].results)
