"""Generation of a region's five functions from its program."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from byoc_mlir.abi import FREE_PACKED, weight_symbol
from byoc_mlir.backends.base import NativeCode
from byoc_mlir.backends.dnnl.codegen import helpers
from byoc_mlir.backends.dnnl.codegen.executions import Threads
from byoc_mlir.backends.dnnl.codegen.helpers import LOAD_STREAM_SLOT
from byoc_mlir.backends.dnnl.codegen.places import Workspace
from byoc_mlir.backends.dnnl.codegen.program import RegionProgram
from byoc_mlir.backends.dnnl.codegen.region_code import RegionFunctions, create_stream
from byoc_mlir.backends.dnnl.codegen.run import RunFunction
from byoc_mlir.backends.dnnl.codegen.slot_layout import STREAM_SLOT, slot_layout
from byoc_mlir.backends.dnnl.codegen.table_arguments import ENGINE_SLOT, Slots, in_table
from byoc_mlir.backends.dnnl.library import calls
from byoc_mlir.kernels.builder import POINTER
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.onednn import constants
from byoc_mlir.runtime.program import SharedLibrary


def emit(
    program: RegionProgram,
    symbol: str,
    inputs: int,
    outputs: int,
    libraries: Sequence[SharedLibrary],
    shared: ModuleBuilder,
) -> NativeCode:
    """Generates the native code of region `symbol`.

    Functions that all regions share are added to `shared`.
    """
    runs = _number_runs(program)
    layout = slot_layout(program)
    code = RegionFunctions(program, symbol, layout, shared)
    _LoadFunction(code, runs).write()
    add_open(code)
    RunFunction(code, inputs, outputs).write()
    add_close(code)
    add_unload(code)
    return NativeCode(
        module=code.module.module,
        shared=shared.module,
        state_slots=layout.state_slots,
        context_slots=layout.context_slots,
        workspace_bytes=program.workspace_bytes,
        constants=tuple(program.weights.values()),
        libraries=tuple(libraries),
        details=tuple(program.details),
    )


def _number_runs(program: RegionProgram) -> dict[calls.Descriptors, int]:
    """Appends the descriptors of every array with consecutive numbers; returns the number of each
    array's first descriptor.
    """
    runs: dict[calls.Descriptors, int] = {}
    for created in program.primitives.items:
        for argument in created.call.arguments:
            if isinstance(argument, calls.Descriptors) and argument not in runs:
                runs[argument] = len(program.descriptors.items)
                for item in argument.items:
                    program.descriptors.append(item)
    return runs


def add_open(code: RegionFunctions) -> None:
    """Adds `R_open`, which creates the objects of a context.

    They are the stream, the memory objects, and the arguments of every execution.
    """
    layout = code.layout
    make_memories = helpers.add_make_memories(code.shared)
    fill_arguments = helpers.add_fill_arguments(code.shared)
    memories = _memory_rows(code)
    arguments = _argument_rows(code)
    function = code.module.function(code.name("open"), (POINTER,) * 3)
    state, context, workspace = function.parameters
    create_stream(function, state, function.slot(context, STREAM_SLOT))
    table = function.address(code.table("memories", memories))
    count = function.integer(len(memories))
    function.check(function.call(make_memories, state, context, workspace, table, count))
    table = function.address(code.table("arguments", arguments))
    count = function.integer(len(arguments))
    function.finish(function.call(fill_arguments, state, context, table, count))
    assert layout.context_slots == layout.arguments + 2 * len(arguments)


def _memory_rows(code: RegionFunctions) -> list[list[int]]:
    layout = code.layout
    return [
        [
            layout.descriptors + memory.descriptor,
            layout.memories + number,
            memory.place.offset if isinstance(memory.place, Workspace) else -1,
        ]
        for number, memory in enumerate(code.program.memories.items)
    ]


def _argument_rows(code: RegionFunctions) -> list[list[int]]:
    layout, rows = code.layout, list[list[int]]()
    parts = (part for execution in code.program.executions for part in execution.parts)
    for argument, memory in (pair for part in parts for pair in part.arguments):
        destination = layout.arguments + 2 * len(rows)
        in_state = int(memory.kind != "context")
        rows.append([argument, in_state, layout.memory_slot(memory), destination])
    return rows


def add_close(code: RegionFunctions) -> None:
    """Adds `R_close`, which destroys the objects that `R_open` creates."""
    layout, function = code.layout, code.destroyer("close", 2)
    _, context = function.parameters
    code.destroy(function, context, "dnnl_memory_destroy", layout.memories, layout.arguments)
    function.call("dnnl_stream_destroy", function.pointer(context, STREAM_SLOT))
    function.finish()


class _LoadFunction:
    """Writer of `R_load`, which creates descriptors, attributes, primitives and constants.

    A constant is packed if its primitive requests that.

    Args:
        runs: number of the first descriptor of each array of descriptors.
    """

    def __init__(self, code: RegionFunctions, runs: dict[calls.Descriptors, int]):
        self._code, self._program, self._layout = code, code.program, code.layout
        self._function = code.module.function(code.name("load"), (POINTER,))
        (self._state,) = self._function.parameters
        layout, program = code.layout, code.program
        first = layout.descriptors
        self._slots = Slots(
            {one: first + n for n, one in reversed([*enumerate(program.descriptors.items)])},
            {run: first + number for run, number in runs.items()},
            {one: layout.attributes + n for n, one in enumerate(program.attributes.items)},
        )

    def write(self) -> None:
        """Writes the function."""
        function = self._function
        self._create_engine()
        self._create_descriptors()
        for number, attributes in enumerate(self._program.attributes.items):
            slot = function.slot(self._state, self._layout.attributes + number)
            self._create_attributes(slot, attributes)
        self._create_primitives()
        self._create_constants()
        self._pack_constants()
        function.finish(function.integer(0, i32))

    def _create_descriptors(self) -> None:
        function, code = self._function, self._code
        rows = [helpers.descriptor_words(one) for one in self._program.descriptors.items]
        first = function.slot(self._state, self._layout.descriptors)
        table = function.address(code.table("descriptors", rows))
        make = helpers.add_make_descriptors(code.shared)
        function.check(function.call(make, first, table, function.integer(len(rows))))

    def _create_primitives(self) -> None:
        function, code = self._function, self._code
        threads = Threads(function)
        for number, created in enumerate(self._program.primitives.items):
            threads.use(created.threads)
            words = [self._layout.primitives + number, created.scratchpad_bytes]
            for argument in created.call.arguments:
                words += in_table(argument, self._slots)[0]
            table = function.address(code.table(f"primitive_{number}", [words]))
            make = helpers.add_make_primitive(code.shared, created.call, self._slots)
            function.check(function.call(make, self._state, table))
        threads.use(None)

    def _create_engine(self) -> None:
        function, state = self._function, self._state
        kind, index = function.integer(constants.CPU, i32), function.integer(0)
        slot = function.slot(state, ENGINE_SLOT)
        function.check(function.call("dnnl_engine_create", slot, kind, index))
        create_stream(function, state, function.slot(state, LOAD_STREAM_SLOT))

    def _create_attributes(self, slot: SSAValue, attributes: calls.Attributes) -> None:
        function = self._function
        function.check(function.call("dnnl_primitive_attr_create", slot))
        created = function.load(slot, POINTER)
        mode = function.integer(constants.USER_SCRATCHPAD, i32)
        function.check(function.call("dnnl_primitive_attr_set_scratchpad_mode", created, mode))
        for setter, masks in (
            ("dnnl_primitive_attr_set_scales_mask", attributes.scales),
            ("dnnl_primitive_attr_set_zero_points_mask", attributes.zero_points),
        ):
            for argument, mask in masks:
                numbers = [function.integer(number, i32) for number in (argument, mask)]
                function.check(function.call(setter, created, *numbers))
        if not attributes.post_ops:
            return
        chain_slot = function.stack_slot()
        function.check(function.call("dnnl_post_ops_create", chain_slot))
        chain = function.load(chain_slot, POINTER)
        for post_op in attributes.post_ops:
            function.check(self._append(chain, post_op))
        function.check(function.call("dnnl_primitive_attr_set_post_ops", created, chain))
        function.check(function.call("dnnl_post_ops_destroy", chain))

    def _append(self, chain: SSAValue, post_op: calls.PostOp) -> SSAValue:
        call = post_op.call
        values = map(self._value, call.arguments)
        return self._function.call(call.function, chain, *values)

    def _value(self, argument: calls.Argument) -> SSAValue:
        """Returns the value of a post-op's argument."""
        if isinstance(argument, calls.MemoryDescriptor):
            return self._function.pointer(self._state, self._slots.descriptors[argument])
        if isinstance(argument, float):
            return self._function.real(argument)
        assert isinstance(argument, int)
        return self._function.integer(argument, i32)

    def _source(self, digest: str) -> SSAValue:
        return self._function.address(self._code.module.external(weight_symbol(digest)))

    def _create_constants(self) -> None:
        function, state = self._function, self._state
        if not self._program.constants.items:
            return
        engine = function.pointer(state, ENGINE_SLOT)
        for number, constant in enumerate(self._program.constants.items):
            slot = function.slot(state, self._layout.constants + number)
            descriptor = function.pointer(state, self._layout.descriptors + constant.descriptor)
            source = self._source(constant.weight.digest)
            function.check(function.call("dnnl_memory_create", slot, descriptor, engine, source))

    def _pack_constants(self) -> None:
        function, layout = self._function, self._layout
        for number, packed in enumerate(self._program.packed):
            words = [
                layout.descriptors + packed.stored,
                layout.primitives + packed.primitive,
                layout.packed + number,
                layout.buffers + number,
                packed.argument,
            ]
            table = function.address(self._code.table(f"pack_{number}", [words]))
            source = self._source(packed.weight.digest)
            pack = helpers.add_pack(self._code.shared)
            function.check(function.call(pack, self._state, source, table))


def add_unload(code: RegionFunctions) -> None:
    """Adds `R_unload`, which destroys the objects of `R_load`, users before their operands."""
    layout, function = code.layout, code.destroyer("unload", 1)
    (state,) = function.parameters
    for destroy, first, end in (
        ("dnnl_memory_destroy", layout.constants, layout.buffers),
        (FREE_PACKED, layout.buffers, layout.state_slots),
        ("dnnl_primitive_destroy", layout.primitives, layout.constants),
        ("dnnl_primitive_attr_destroy", layout.attributes, layout.primitives),
        ("dnnl_memory_desc_destroy", layout.descriptors, layout.attributes),
    ):
        code.destroy(function, state, destroy, first, end)
    function.call("dnnl_stream_destroy", function.pointer(state, LOAD_STREAM_SLOT))
    function.call("dnnl_engine_destroy", function.pointer(state, ENGINE_SLOT))
    function.finish()
