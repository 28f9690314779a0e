"""The pass `add-entry-points`: the functions that the runtime calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, cf, func, llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    UnitAttr,
    UnrealizedConversionCastOp,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.abi import (
    ALIASES,
    ARENA_BYTES,
    ARENA_SIZE,
    CLOSE,
    CONTEXT_SLOTS,
    HOOKS,
    LOAD,
    MAY_ALIAS,
    OPEN,
    RUN,
    SLOT_BYTES,
    STATE_SLOTS,
    THREADS_SYMBOL,
    UNDONE_BY,
    UNLOAD,
    WORKSPACE_OFFSET,
    EntryPoint,
)
from byoc_mlir.dialects.host import CopyApartOp
from byoc_mlir.kernels.ops import load
from byoc_mlir.lowering.denormals import FLUSH, RESTORE, denormal_functions
from byoc_mlir.lowering.region_calls import (
    RegionCall,
    host_slots,
    int_attribute,
    region_functions,
)
from byoc_mlir.lowering.statuses import (
    PlacedRegion,
    RunChecks,
    Statuses,
    advanced,
    branch_on_failure,
)

SET_THREADS = "omp_set_num_threads"
GET_THREADS = "omp_get_max_threads"

_POINTER = LLVMPointerType()
_LOAD_REGIONS = "byoc_load_regions"


@dataclass(frozen=True)
class AddEntryPoints(ModulePass):
    """Adds `byoc_load`, `byoc_open`, `byoc_run`, `byoc_close` and `byoc_unload`, and passes state
    and context down to the regions. docs/dev-notes/architecture.md, "Native code", describes these
    functions.

    Options:
        threads: usual number of OpenMP threads of a run, 0 without an OpenMP runtime. The external
            variable `byoc_threads` holds the actual number of a process.
        outputs: number of trailing arguments of @main that are results.
        flush_denormals: treat denormals as zero during a run, on all threads.

    ```mlir
    func.func @main(%arena: memref<512xi8>, %x: memref<4xf32>, %y: memref<4xf32>) {
      func.call @dnnl_main_0(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
      func.return
    }
    // becomes
    func.func private @main(%state: !llvm.ptr, %context: !llvm.ptr, %arena: …, …) -> i64 {
      %s = llvm.getelementptr %state[0] : …
      %status = func.call @dnnl_main_0(%s, %c, %x, %y) : (…) -> i32
      cf.cond_br %failed, ^failure(%code), ^next
      …
    }
    func.func @byoc_run(%state, %context, %arena, %inputs, %outputs) -> i64 { … }
    ```

    A status has the region's number, from 1, in its upper 32 bits, and the region's return value in
    the lower ones; for a `host.check`, the number of the check. If a hook fails, the regions before
    it run the hooks that undo their own. The module gets the attributes `byoc.state_slots`,
    `byoc.context_slots` and `byoc.arena_bytes`: the sizes of state, context and arena.
    """

    name = "add-entry-points"
    threads: int = 0
    outputs: int = 1
    flush_denormals: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        main = _main(op)
        functions = _host_functions(op, main)
        checks = RunChecks(functions.values())
        checks.describe(op)
        regions = _number(region_functions(op), host_slots(op))
        threaded = Statuses(regions, functions, checks)
        for function in threaded.functions.values():
            threaded.thread(function)
        _mark_aliases(main)
        for declaration in region_functions(op):
            _take_state(declaration)
        op.attributes[STATE_SLOTS] = _total(region.call.state_slots for region in regions)
        op.attributes[CONTEXT_SLOTS] = _total(
            [host_slots(op), *(region.call.context_slots for region in regions)]
        )
        op.attributes[ARENA_BYTES] = IntegerAttr(int_attribute(main, ARENA_BYTES), i64)
        for name in (ARENA_SIZE, ALIASES):
            if name in main.attributes:
                op.attributes[name] = main.attributes[name]
        entries = [
            _hook_entry(LOAD, regions, _LOAD_REGIONS),
            _load_entry(self.threads),
            _hook_entry(OPEN, regions, OPEN.symbol),
            _run_entry(self.threads, main, self.outputs, flush_denormals=self.flush_denormals),
            _hook_entry(CLOSE, regions, CLOSE.symbol),
            _hook_entry(UNLOAD, regions, UNLOAD.symbol),
        ]
        op.body.block.add_ops([*_declarations(self.threads, regions), *entries])
        if self.flush_denormals:
            op.body.block.add_ops(denormal_functions(threads=self.threads > 0))


def _main(module: ModuleOp) -> func.FuncOp:
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == "main":
            return op
    raise PassFailedException("add-entry-points: the module has no function @main")


def _mark_aliases(main: func.FuncOp) -> None:
    """Marks the arguments of @main that may share memory.

    These are operands of a `host.copy_apart`, which copies only if its operands do not share
    memory.
    """
    copies = [op for op in main.walk() if isinstance(op, CopyApartOp)]
    marked = {value for op in copies for value in op.operands}
    if marked:
        main.properties["arg_attrs"] = ArrayAttr(
            DictionaryAttr({MAY_ALIAS: UnitAttr()} if argument in marked else {})
            for argument in main.body.blocks[0].args
        )


def _number(declarations: Sequence[func.FuncOp], context: int) -> list[PlacedRegion]:
    """Returns the numbered regions with their slots; `context` is the first free context slot."""
    regions: list[PlacedRegion] = []
    state = 0
    for number, declaration in enumerate(declarations, start=1):
        call = RegionCall.of(declaration)
        workspace = int_attribute(declaration, WORKSPACE_OFFSET)
        regions.append(PlacedRegion(number, call, state, context, workspace))
        state += call.state_slots
        context += call.context_slots
    return regions


def _total(counts: Iterable[int]) -> IntegerAttr:
    return IntegerAttr(sum(counts), i64)


def _take_state(declaration: func.FuncOp) -> None:
    inputs = [_POINTER, _POINTER, *declaration.function_type.inputs]
    declaration.properties["function_type"] = FunctionType.from_lists(inputs, [i32])


def _host_functions(module: ModuleOp, main: func.FuncOp) -> dict[str, func.FuncOp]:
    """Returns @main and the branches and bodies of its control flow, by name."""
    planned = [
        op for op in module.ops if isinstance(op, func.FuncOp) and ARENA_BYTES in op.attributes
    ]
    return {function.sym_name.data: function for function in (main, *planned)}


def _hook_entry(hook: EntryPoint, regions: Sequence[PlacedRegion], name: str) -> func.FuncOp:
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
    arguments = [
        _argument(builder, parameter, value, region)
        for parameter, value in zip(hook.parameters, values, strict=False)
    ]
    symbol = hook.hook(region.call.symbol)
    return builder.insert(func.CallOp(symbol, arguments, _results(hook)))


def _results(hook: EntryPoint) -> list[Attribute]:
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


def _argument(builder: Builder, parameter: str, value: SSAValue, region: PlacedRegion) -> SSAValue:
    offsets = {
        "state": region.state * SLOT_BYTES,
        "context": region.context * SLOT_BYTES,
        "workspace": region.workspace,
    }
    return advanced(builder, value, offsets[parameter])


def _load_entry(threads: int) -> func.FuncOp:
    """Builds `byoc_load(state)`; regions create their primitives for the number of threads that
    runs use.
    """
    block = Block(arg_types=[_POINTER])
    builder = Builder(InsertPoint.at_end(block))
    call = func.CallOp(_LOAD_REGIONS, [block.args[0]], [i64])
    _with_threads(builder, threads, [call])
    builder.insert(func.ReturnOp(call))
    return func.FuncOp(LOAD.symbol, FunctionType.from_lists([_POINTER], [i64]), Region(block))


def _with_threads(builder: Builder, threads: int, calls: Sequence[Operation]) -> None:
    """Inserts calls that run with `byoc_threads` OpenMP threads.

    The caller's number of threads is restored afterwards.
    """
    if not threads:
        builder.insert(calls)
        return
    before = builder.insert(func.CallOp(GET_THREADS, [], [i32])).results[0]
    variable = builder.insert(llvm.AddressOfOp(THREADS_SYMBOL, _POINTER))
    count = builder.insert(llvm.LoadOp(variable, i32)).dereferenced_value
    builder.insert(func.CallOp(SET_THREADS, [count], []))
    builder.insert(calls)
    builder.insert(func.CallOp(SET_THREADS, [before], []))


def _run_entry(
    threads: int, main: func.FuncOp, outputs: int, *, flush_denormals: bool
) -> func.FuncOp:
    """Builds `byoc_run(state, context, arena, inputs, outputs)`, which calls @main."""
    block = Block(arg_types=[_POINTER] * len(RUN.parameters))
    builder = Builder(InsertPoint.at_end(block))
    state, context, arena, input_pointers, output_pointers = block.args
    _, _, arena_type, *types = main.function_type.inputs
    inputs = len(types) - outputs
    slots = [(input_pointers, index) for index in range(inputs)]
    slots += [(output_pointers, index) for index in range(outputs)]
    data = [
        _memref(builder, _loaded(builder, array, index), type_)
        for (array, index), type_ in zip(slots, types, strict=True)
    ]
    arguments = [state, context, _memref(builder, arena, arena_type), *data]
    call = func.CallOp("main", arguments, [i64])
    _with_threads(builder, threads, _flushing(call) if flush_denormals else [call])
    builder.insert(func.ReturnOp(call))
    type_ = FunctionType.from_lists(block.arg_types, [i64])
    return func.FuncOp(RUN.symbol, type_, Region(block))


def _flushing(call: func.CallOp) -> Sequence[Operation]:
    flush = llvm.CallOp(FLUSH, return_type=i32)
    assert flush.returned is not None
    return flush, call, llvm.CallOp(RESTORE, flush.returned)


def _loaded(builder: Builder, array: SSAValue, index: int) -> SSAValue:
    slot = advanced(builder, array, index * SLOT_BYTES)
    return builder.insert(load(slot, _POINTER)).dereferenced_value


def _memref(builder: Builder, pointer: SSAValue, type_: Attribute) -> SSAValue:
    return builder.insert(UnrealizedConversionCastOp.get([pointer], [type_])).results[0]


def _declarations(threads: int, regions: Sequence[PlacedRegion]) -> list[Operation]:
    declared: list[Operation] = []
    if threads:
        declared.append(llvm.GlobalOp(i32, THREADS_SYMBOL, "external"))
        declared.append(func.FuncOp.external(SET_THREADS, [i32], []))
        declared.append(func.FuncOp.external(GET_THREADS, [], [i32]))
    declared += [
        func.FuncOp.external(
            hook.hook(region.call.symbol), [_POINTER] * len(hook.parameters), _results(hook)
        )
        for region in regions
        for hook in HOOKS
        if hook.name in region.call.hooks
    ]
    return declared
