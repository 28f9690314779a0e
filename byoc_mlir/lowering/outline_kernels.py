"""The pass `outline-kernels`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.abi import KERNEL, PREFER_NO_GATHER
from byoc_mlir.dialects import host
from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.dynamic_buffers import AllocOp, View, ViewOp
from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.linalg_to_loops.contraction import is_in_place, is_product_sum, is_zero_fill
from byoc_mlir.lowering.linalg_to_loops.rows import nests_in_rows

GroupSize: TypeAlias = Callable[[Sequence[linalg.GenericOp]], int]
"""Function that returns the number of ops at the beginning that form one kernel."""

_LONGEST_NAME = 48
_WITHOUT_EFFECT = (
    *(memref.AllocOp, memref.GetGlobalOp, memref.ReinterpretCastOp, arith.ConstantOp),
    *(AllocOp, ViewOp),
)


class OutlineKernels(ModulePass):
    """Moves each `linalg` op and each `host.kernel` of the host functions into its own function.

    A GEMM and the in-place ops after it are in one function, and so are ops that run row by row.
    Equal ops share a function. The arguments of a function are whole buffers, each of them once, so
    that they do not alias; views are created in the function.
    """

    name = "outline-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = _Kernels()
        with asking_of(op):
            for block in host_blocks(op):
                _outline_block(block, kernels, self.group_size)
        op.body.block.add_ops(kernels.functions)

    def group_size(self, ops: Sequence[linalg.GenericOp]) -> int:
        """Returns the number of ops at the beginning that form one loop nest."""
        rows = len(nests_in_rows(ops))
        if rows:
            return rows
        count = 1
        while count < len(ops) and _belongs(ops[count], ops[:count]):
            count += 1
        return count


@dataclass
class _Kernels:
    functions: list[func.FuncOp] = field(default_factory=list[func.FuncOp])
    _known: dict[Hashable, SymbolRefAttr] = field(default_factory=dict[Hashable, SymbolRefAttr])

    def function_for(self, ops: Sequence[Operation], buffers: Sequence[SSAValue]) -> SymbolRefAttr:
        """Returns the kernel that does what `ops` do; clones them if there is none yet."""
        key = _structure(ops, buffers)
        symbol = self._known.get(key)
        if symbol is None:
            name = f"{_readable(ops)}_{len(self.functions)}"
            symbol = self._known[key] = SymbolRefAttr(name)
            self.functions.append(_kernel(name, ops, buffers))
        return symbol


def _outline_block(block: Block, kernels: _Kernels, group_size: GroupSize) -> None:
    views = [op for op in block.ops if isinstance(op, View)]
    for group in _groups(block, group_size):
        _outline(group, kernels)
    for op in in_time(block.ops):
        if isinstance(op, host.KernelOp):
            _outline([op], kernels)
    for view in reversed(views):
        if not view.results[0].first_use:
            block.erase_op(view)


def _groups(block: Block, group_size: GroupSize) -> Iterator[Sequence[linalg.GenericOp]]:
    """Yields the `linalg` ops of a block in order, grouped by loop nest."""
    for run in _runs(block):
        first = 0
        while first < len(run):
            count = group_size(run[first:])
            yield run[first : first + count]
            first += count


def _runs(block: Block) -> Iterator[Sequence[linalg.GenericOp]]:
    """Yields runs of `linalg` ops without an op with effects between them."""
    run: list[linalg.GenericOp] = []
    for op in in_time(block.ops):
        if isinstance(op, linalg.GenericOp):
            run.append(op)
        elif run and not isinstance(op, _WITHOUT_EFFECT):
            yield run
            run = []
    if run:
        yield run


def _belongs(op: linalg.GenericOp, group: Sequence[linalg.GenericOp]) -> bool:
    """True if `op` reduces into the buffer that the group fills, or updates the group's result in
    place.
    """
    buffer = group[-1].outputs[0]
    if len(group) == 1 and is_zero_fill(group[0]):
        return is_product_sum(op) and op.outputs[0] is buffer
    return any(is_product_sum(member) for member in group) and is_in_place(op, buffer)


def _outline(group: Sequence[Operation], kernels: _Kernels) -> None:
    """Replaces consecutive ops by one call."""
    operands = dict.fromkeys(operand for op in group for operand in op.operands)
    views = [value.owner for value in operands if isinstance(value.owner, View)]
    buffers = list(dict.fromkeys(root_of(operand) for operand in operands))
    kernel = kernels.function_for([*views, *group], buffers)
    call = func.CallOp.create(operands=buffers, properties={"callee": kernel})
    call.location = fused_location(group)
    block = group[-1].parent
    assert block is not None
    block.insert_op_after(call, group[-1])
    for op in reversed(group):
        block.erase_op(op)


def root_of(value: SSAValue) -> SSAValue:
    """Returns the buffer of which a memref is a view."""
    owner = value.owner
    return owner.source if isinstance(owner, View) else value


def _kernel(name: str, ops: Sequence[Operation], buffers: Sequence[SSAValue]) -> func.FuncOp:
    block = Block(arg_types=[buffer.type for buffer in buffers])
    values: dict[SSAValue, SSAValue] = dict(zip(buffers, block.args, strict=True))
    for op in _bodies(ops, values):
        clone = op.clone(values)
        for old, new in zip(op.walk(), clone.walk(), strict=True):
            new.location = old.location
        block.add_op(clone)
    block.add_op(func.ReturnOp())
    type_ = FunctionType.from_lists([buffer.type for buffer in buffers], [])
    function = func.FuncOp(name, type_, Region(block), visibility="private")
    function.attributes[KERNEL] = StringAttr(name)
    function.attributes["no_inline"] = UnitAttr()  # its arguments do not alias, its caller's might
    if any(isinstance(op, host.KernelOp) and op.prefer_no_gather for op in ops):
        function.attributes[PREFER_NO_GATHER] = UnitAttr()
    function.location = fused_location(ops)
    return function


def _bodies(ops: Iterable[Operation], values: dict[SSAValue, SSAValue]) -> Iterator[Operation]:
    """Yields the ops; a `host.kernel` is replaced by the ops of its body."""
    for op in ops:
        if not isinstance(op, host.KernelOp):
            yield op
            continue
        for operand, argument in zip(op.arguments, op.body.block.args, strict=True):
            values[argument] = values[operand]
        yield from (inner for inner in op.body.block.ops if not isinstance(inner, host.YieldOp))


def _readable(ops: Sequence[Operation]) -> str:
    """Returns a function name that consists of the names of the model's ops."""
    generics = [op for op in ops if isinstance(op, linalg.GenericOp)]
    words = [op.doc.data for op in generics if op.doc and (len(generics) == 1 or op.inputs)]
    words += [op.kernel_name.data for op in ops if isinstance(op, host.KernelOp)]
    name = "_".join(dict.fromkeys(words)) or "kernel"
    return name[:_LONGEST_NAME].rstrip("_")


def _structure(ops: Sequence[Operation], buffers: Sequence[SSAValue]) -> Hashable:
    """Returns a key that groups of ops share if they compute the same on buffers of the same
    types.
    """
    numbers: dict[SSAValue, int] = {}
    for buffer in buffers:
        numbers[buffer] = len(numbers)
    return (
        tuple(buffer.type for buffer in buffers),
        tuple(_op_structure(op, numbers) for op in ops),
    )


def _op_structure(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    operands = tuple(numbers[operand] for operand in op.operands)
    for result in op.results:
        numbers[result] = len(numbers)
    regions: list[Hashable] = []
    for region in op.regions:
        for block in region.blocks:
            for arg in block.args:
                numbers[arg] = len(numbers)
            regions.append(tuple(arg.type for arg in block.args))
            regions.extend(_op_structure(inner, numbers) for inner in block.ops)
    properties = tuple((name, value) for name, value in op.properties.items() if name != "doc")
    return (op.name, operands, tuple(op.result_types), properties, tuple(regions))
