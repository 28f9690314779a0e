"""The pass `add-entry-points`: the functions that the runtime calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
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

from byoc_mlir import abi
from byoc_mlir.dialects.device_ops import TransferOp, WaitOp
from byoc_mlir.dialects.host import CopyApartOp
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.team import BEGIN_RUN, END_RUN, add_run_functions
from byoc_mlir.lowering.denormals import FLUSH, RESTORE, denormal_functions
from byoc_mlir.lowering.device_traffic import describe_traffic
from byoc_mlir.lowering.hook_entries import hook_entry, hook_results
from byoc_mlir.lowering.region_calls import (
    RegionCall,
    device_functions,
    host_slots,
    int_attribute,
    region_functions,
)
from byoc_mlir.lowering.statuses import (
    PlacedRegion,
    RunChecks,
    Statuses,
    device_function,
    loaded_slot,
)

SET_THREADS = "omp_set_num_threads"
GET_THREADS = "omp_get_max_threads"

_SET_THREADS_TYPE = llvm.LLVMFunctionType([i32])
_GET_THREADS_TYPE = llvm.LLVMFunctionType([], i32)

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
    `byoc.context_slots` and `byoc.arena_bytes`: the sizes of state, context and arena; and
    `byoc.device_traffic`, the numbers of copies and waits.
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
        describe_traffic(op, functions.values())
        stand_ins = device_functions(op)
        placed = _number([*region_functions(op), *stand_ins], host_slots(op))
        devices = {device.call.space: device for device in placed[len(placed) - len(stand_ins) :]}
        regions = [_in_arena(one, devices) for one in placed[: len(placed) - len(stand_ins)]]
        for stand_in in stand_ins:
            stand_in.detach()
            stand_in.erase()
        called = _device_declarations(functions.values())
        threaded = Statuses(regions, devices, functions, checks)
        for function in threaded.functions.values():
            threaded.thread(function)
        _put_before_chains(op, threaded.functions.values(), devices)
        _mark_aliases(main)
        for declaration in region_functions(op):
            _take_state(declaration)
        op.attributes[abi.STATE_SLOTS] = _total(region.call.state_slots for region in placed)
        op.attributes[abi.CONTEXT_SLOTS] = _total(
            [host_slots(op), *(region.call.context_slots for region in placed)]
        )
        op.attributes[abi.ARENA_BYTES] = IntegerAttr(int_attribute(main, abi.ARENA_BYTES), i64)
        for name in (abi.ARENA_SIZE, abi.ALIASES, abi.DEVICE_ARENAS):
            if name in main.attributes:
                op.attributes[name] = main.attributes[name]
        first, last = [*devices.values(), *regions], [*regions, *devices.values()]
        entries = [
            hook_entry(abi.LOAD, first, _LOAD_REGIONS),
            _load_entry(self.threads),
            hook_entry(abi.OPEN, first, abi.OPEN.symbol),
            _run_entry(
                self.threads, main, self.outputs, devices, flush_denormals=self.flush_denormals
            ),
            hook_entry(abi.CLOSE, last, abi.CLOSE.symbol),
            hook_entry(abi.UNLOAD, last, abi.UNLOAD.symbol),
        ]
        op.body.block.add_ops([*_declarations(self.threads, placed), *called, *entries])
        if self.flush_denormals:
            op.body.block.add_ops(denormal_functions(threads=self.threads > 0))
        if self.threads > 1:
            add_run_functions(ModuleBuilder(op))


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
            DictionaryAttr({abi.MAY_ALIAS: UnitAttr()} if argument in marked else {})
            for argument in main.body.blocks[0].args
        )


def _put_before_chains(
    module: ModuleOp, functions: Iterable[func.FuncOp], devices: Mapping[str, PlacedRegion]
) -> None:
    """Declares a function in the place of each chain, and describes the chains on the module.

    The compiler generates these functions when it links the device's code: they record the chain,
    which gets another name.
    """
    described: dict[str, Attribute] = {}
    for function in functions:
        chain = function.attributes.get(abi.CHAIN)
        if not isinstance(chain, DictionaryAttr):
            continue
        name, types = function.sym_name.data, function.function_type
        device = devices[cast(StringAttr, chain.data["device"]).data]
        pointers = len(types.inputs) - 2  # besides state and context
        numbers = {"number": device.number, "context": device.context, "pointers": pointers}
        fields = {key: IntegerAttr(value, i64) for key, value in numbers.items()}
        described[name] = DictionaryAttr({**chain.data, **fields})
        function.properties["sym_name"] = StringAttr(f"{name}_{abi.DIRECT}")
        module.body.block.add_op(func.FuncOp.external(name, types.inputs.data, types.outputs.data))
    if described:
        module.attributes[abi.CHAINS] = DictionaryAttr(described)


def _number(declarations: Sequence[func.FuncOp], context: int) -> list[PlacedRegion]:
    """Returns the numbered regions with their slots; `context` is the first free context slot."""
    regions: list[PlacedRegion] = []
    state = 0
    for number, declaration in enumerate(declarations, start=1):
        call = RegionCall.of(declaration)
        workspace = int_attribute(declaration, abi.WORKSPACE_OFFSET)
        regions.append(PlacedRegion(number, call, state, context, workspace))
        state += call.state_slots
        context += call.context_slots
    return regions


def _in_arena(region: PlacedRegion, devices: Mapping[str, PlacedRegion]) -> PlacedRegion:
    """Returns the region with the slot of the arena for its memory space."""
    device = devices.get(region.call.space)
    if device is None:
        return region
    return replace(region, arena_slot=device.context + abi.DEVICE_ARENA_SLOT)


def _device_declarations(functions: Iterable[func.FuncOp]) -> list[func.FuncOp]:
    """Declares the functions of devices that copies and waits call."""
    used = {
        device_function(op): len(op.operands)
        for function in functions
        for op in function.walk()
        if isinstance(op, TransferOp | WaitOp)
    }
    transfer: list[Attribute] = [_POINTER, _POINTER, i64]
    return [
        func.FuncOp.external(name, [_POINTER, *(transfer if operands else [])], [i32])
        for name, operands in sorted(used.items())
    ]


def _total(counts: Iterable[int]) -> IntegerAttr:
    return IntegerAttr(sum(counts), i64)


def _take_state(declaration: func.FuncOp) -> None:
    call = RegionCall.of(declaration)
    before = [_POINTER, _POINTER]
    if call.space != abi.HOST_SPACE:
        before += [_POINTER] * (1 + len(call.uploaded))  # the queue, and the constants
    inputs = [*before, *declaration.function_type.inputs]
    declaration.properties["function_type"] = FunctionType.from_lists(inputs, [i32])
    declaration.properties["sym_name"] = StringAttr(call.function)


def _host_functions(module: ModuleOp, main: func.FuncOp) -> dict[str, func.FuncOp]:
    """Returns @main and the branches and bodies of its control flow, by name."""
    planned = [
        op for op in module.ops if isinstance(op, func.FuncOp) and abi.ARENA_BYTES in op.attributes
    ]
    return {function.sym_name.data: function for function in (main, *planned)}


def _load_entry(threads: int) -> func.FuncOp:
    """Builds `byoc_load(state)`; regions create their primitives for the number of threads that
    runs use.
    """
    block = Block(arg_types=[_POINTER])
    builder = Builder(InsertPoint.at_end(block))
    call = func.CallOp(_LOAD_REGIONS, [block.args[0]], [i64])
    _with_threads(builder, threads, [call])
    builder.insert(func.ReturnOp(call))
    return func.FuncOp(abi.LOAD.symbol, FunctionType.from_lists([_POINTER], [i64]), Region(block))


def _with_threads(builder: Builder, threads: int, calls: Sequence[Operation]) -> None:
    """Inserts calls that run with `byoc_threads` OpenMP threads.

    The caller's number of threads is restored afterwards.
    """
    if not threads:
        builder.insert(calls)
        return
    before = builder.insert(llvm.CallOp(GET_THREADS, return_type=i32)).results[0]
    variable = builder.insert(llvm.AddressOfOp(abi.THREADS_SYMBOL, _POINTER))
    count = builder.insert(llvm.LoadOp(variable, i32)).dereferenced_value
    builder.insert(llvm.CallOp(SET_THREADS, count))
    builder.insert(calls)
    builder.insert(llvm.CallOp(SET_THREADS, before))


def _run_entry(
    threads: int,
    main: func.FuncOp,
    outputs: int,
    devices: Mapping[str, PlacedRegion],
    *,
    flush_denormals: bool,
) -> func.FuncOp:
    """Builds `byoc_run(state, context, arena, inputs, outputs)`, which calls @main."""
    block = Block(arg_types=[_POINTER] * len(abi.RUN.parameters))
    builder = Builder(InsertPoint.at_end(block))
    state, context, arena, input_pointers, output_pointers = block.args
    arenas = [arena, *(_device_arena(builder, context, devices[name]) for name in sorted(devices))]
    _, _, *all_types = main.function_type.inputs
    arena_types, types = all_types[: len(arenas)], all_types[len(arenas) :]
    inputs = len(types) - outputs
    slots = [(input_pointers, index) for index in range(inputs)]
    slots += [(output_pointers, index) for index in range(outputs)]
    data = [
        _memref(builder, loaded_slot(builder, array, index), type_)
        for (array, index), type_ in zip(slots, types, strict=True)
    ]
    passed = map(_memref, [builder] * len(arenas), arenas, arena_types)
    arguments = [state, context, *passed, *data]
    call = func.CallOp("main", arguments, [i64])
    calls = _flushing(call) if flush_denormals else [call]
    if threads > 1:
        begin = llvm.CallOp(BEGIN_RUN, return_type=_POINTER)
        calls = [begin, *calls, llvm.CallOp(END_RUN, begin.results[0])]
    _with_threads(builder, threads, calls)
    builder.insert(func.ReturnOp(call))
    type_ = FunctionType.from_lists(block.arg_types, [i64])
    return func.FuncOp(abi.RUN.symbol, type_, Region(block))


def _device_arena(builder: Builder, context: SSAValue, device: PlacedRegion) -> SSAValue:
    return loaded_slot(builder, context, device.context + abi.DEVICE_ARENA_SLOT)


def _flushing(call: func.CallOp) -> Sequence[Operation]:
    flush = llvm.CallOp(FLUSH, return_type=i32)
    assert flush.returned is not None
    return flush, call, llvm.CallOp(RESTORE, flush.returned)


def _memref(builder: Builder, pointer: SSAValue, type_: Attribute) -> SSAValue:
    return builder.insert(UnrealizedConversionCastOp.get([pointer], [type_])).results[0]


def _declarations(threads: int, regions: Sequence[PlacedRegion]) -> list[Operation]:
    declared: list[Operation] = []
    if threads:
        declared.append(llvm.GlobalOp(i32, abi.THREADS_SYMBOL, "external"))
        external = llvm.LinkageAttr("external")
        for name, type_ in ((SET_THREADS, _SET_THREADS_TYPE), (GET_THREADS, _GET_THREADS_TYPE)):
            declared.append(llvm.FuncOp(name, type_, external))
    declared += [
        func.FuncOp.external(
            hook.hook(region.call.symbol), [_POINTER] * len(hook.parameters), hook_results(hook)
        )
        for region in regions
        for hook in abi.HOOKS
        if hook.name in region.call.hooks
    ]
    return declared
