"""Entry points that call a hook of every region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, cf, func
from xdsl.dialects.builtin import FunctionType, i32, i64
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from byoc_mlir.abi import SLOT_BYTES, UNDONE_BY, EntryPoint
from byoc_mlir.lowering.statuses import PlacedRegion, advanced, branch_on_failure, loaded_slot

_POINTER = LLVMPointerType()


def hook_entry(hook: EntryPoint, regions: Sequence[PlacedRegion], name: str) -> func.FuncOp:
    """Builds the function `name`, which calls the hook of every region that defines it.

    If a `load` or `open` hook fails, the function undoes the hooks of the previous regions, and
    returns the status.
    """
    block, failure = Block(arg_types=[_POINTER] * len(hook.parameters)), Block(arg_types=[i64])
    failure.add_op(func.ReturnOp(failure.args[0]))
    blocks, failures = [block], [failure]
    undo = UNDONE_BY.get(hook)
    for region in regions:
        if hook.name not in region.call.hooks:
            continue
        builder = Builder(InsertPoint.at_end(blocks[-1]))
        call = _call_hook(builder, hook, region, block.args)
        if hook.returns_status:
            following = Block()
            branch_on_failure(builder, call.results[0], region.number, following, failures[-1])
            blocks.append(following)
        if undo is not None and undo.name in region.call.hooks:
            undoing = Block(arg_types=[i64])
            builder = Builder(InsertPoint.at_end(undoing))
            _call_hook(builder, undo, region, block.args)
            builder.insert(cf.BranchOp(failures[-1], undoing.args[0]))
            failures.append(undoing)
    return _finished(name, blocks, failures, [i64] if hook.returns_status else [])


def _call_hook(
    builder: Builder, hook: EntryPoint, region: PlacedRegion, values: Sequence[SSAValue]
) -> func.CallOp:
    """Calls a region's hook with as many of the entry point's arguments as the hook takes."""
    given = dict(zip(hook.parameters, values, strict=False))
    arguments = [_argument(builder, parameter, given, region) for parameter in given]
    symbol = hook.hook(region.call.symbol)
    return builder.insert(func.CallOp(symbol, arguments, hook_results(hook)))


def hook_results(hook: EntryPoint) -> list[Attribute]:
    """Returns the result types of a hook."""
    return [i32] if hook.returns_status else []


def _finished(
    name: str, blocks: list[Block], failures: list[Block], results: Sequence[Attribute]
) -> func.FuncOp:
    end = Builder(InsertPoint.at_end(blocks[-1]))
    values: list[Operation] = []
    if results:
        values.append(end.insert(arith.ConstantOp.from_int_and_width(0, i64)))
    end.insert(func.ReturnOp(*values))
    used = failures if len(blocks) > 1 else []
    type_ = FunctionType.from_lists(list(blocks[0].arg_types), results)
    return func.FuncOp(name, type_, Region([*blocks, *reversed(used)]))


def _argument(
    builder: Builder, parameter: str, given: Mapping[str, SSAValue], region: PlacedRegion
) -> SSAValue:
    base = given[parameter]
    if parameter == "state":
        return advanced(builder, base, region.state * SLOT_BYTES)
    if parameter == "context":
        return advanced(builder, base, region.context * SLOT_BYTES)
    if region.arena_slot is not None:
        base = loaded_slot(builder, given["context"], region.arena_slot)
    return advanced(builder, base, region.workspace)
