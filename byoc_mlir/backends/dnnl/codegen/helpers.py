"""Helper functions that all regions share: each loops over a table of 64-bit words.

A function of this file adds its helper to a module once; a second call returns the same symbol.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.abi import FIND_PACKED, FREE_PACKED, KEEP_PACKED
from byoc_mlir.backends.dnnl.codegen.table_arguments import (
    ENGINE_SLOT,
    MAX_DIMS,
    Cursor,
    Slots,
    in_table,
    padded_dims,
)
from byoc_mlir.backends.dnnl.library.calls import MemoryDescriptor, PrimitiveCall
from byoc_mlir.backends.dnnl.library.formats import descriptor_strides, format_tag
from byoc_mlir.kernels.builder import POINTER, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.onednn.constants import Arg, Query

LOAD_STREAM_SLOT, FIRST_FREE_SLOT = 1, 2
"""State slots of every region, after the slot of the engine."""

SCRATCHPAD_STATUS = 1000
"""Status if oneDNN needs more scratchpad than was planned, as it may on another CPU."""

OUT_OF_MEMORY_STATUS = 1

_HUGE_PAGE = 1 << 21
"""Bytes of a huge page on x86-64."""

_USE_HUGE_PAGES = 14
"""Linux's MADV_HUGEPAGE; it is only advice, so its result is ignored."""

_PREFIX = "byoc_dnnl"
_DESCRIPTOR_WORDS = 3 + 2 * MAX_DIMS
_MEMORY_WORDS = 3
_ARGUMENT_WORDS = 4


def descriptor_words(descriptor: MemoryDescriptor) -> list[int]:
    """Returns a row of the table of `make_descriptors`: rank, type, tag or -1, dims, strides."""
    tag = format_tag(descriptor)
    strides = descriptor_strides(descriptor) if tag is None else ()
    head = [len(descriptor.dims), int(descriptor.data_type), -1 if tag is None else tag]
    return [*head, *padded_dims(descriptor.dims), *padded_dims(strides)]


def add_make_descriptors(module: ModuleBuilder) -> str:
    """Adds `i32 (slots, table, count)`, which creates memory descriptors."""
    name = f"{_PREFIX}_make_descriptors"
    if module.has(name):
        return name
    function = module.function(name, (POINTER, POINTER, i64), internal=True)
    slots, table, count = function.parameters

    def create(index: SSAValue) -> None:
        row = function.slot(table, function.multiply(index, _DESCRIPTOR_WORDS))
        slot = function.slot(slots, index)
        rank, data_type, tag = (function.word(row, word, i32) for word in range(3))
        dims, strides = function.slot(row, 3), function.slot(row, 3 + MAX_DIMS)
        has_tag = function.compare("sge", tag, function.integer(0, i32))

        def described(what: str, last: SSAValue) -> Sequence[SSAValue]:
            name = f"dnnl_memory_desc_create_with_{what}"
            return [function.call(name, slot, rank, dims, data_type, last)]

        (status,) = function.branch(
            has_tag, lambda: described("tag", tag), lambda: described("strides", strides), i32
        )
        function.check(status)

    function.loop(count, create)
    function.finish(function.integer(0, i32))
    return name


def add_make_primitive(module: ModuleBuilder, call: PrimitiveCall, slots: Slots) -> str:
    """Adds `i32 (state, table)`, which creates a primitive of the call's kind.

    The table holds the primitive's slot, the planned bytes of scratchpad, and the words of the
    arguments.
    """
    name = f"{_PREFIX}_make_{call.kind}"
    if module.has(name):
        return name
    function = module.function(name, (POINTER, POINTER), internal=True)
    state, table = function.parameters
    descriptor = function.stack_slot()
    arguments: list[SSAValue] = []
    word = 2
    for argument in call.arguments:
        words, read = in_table(argument, slots)
        arguments.append(read(Cursor(function, state, table, word)))
        word += len(words)
    function.check(function.call(call.function, descriptor, *arguments))
    created = function.load(descriptor, POINTER)
    first = function.integer(0, i32)
    scratchpad = _query(function, created, Query.SCRATCHPAD_MD, first)
    size = function.call("dnnl_memory_desc_get_size", scratchpad, result=i64)
    too_much = function.compare("sgt", size, function.word(table, 1))
    excess = function.integer(SCRATCHPAD_STATUS, i32)
    function.check(function.select(too_much, excess, function.integer(0, i32)))
    slot = function.slot(state, function.word(table, 0))
    status = function.call("dnnl_primitive_create", slot, created)
    function.call("dnnl_primitive_desc_destroy", created)
    function.finish(status)
    return name


def _query(
    function: FunctionBuilder, descriptor: SSAValue, what: Query, index: SSAValue
) -> SSAValue:
    return function.call(
        "dnnl_primitive_desc_query_md",
        descriptor,
        function.integer(what, i32),
        index,
        result=POINTER,
    )


def add_pack(module: ModuleBuilder) -> str:
    """Adds `i32 (state, source, table)`, which packs a constant into the layout that a primitive
    requires.

    The packed copy is shared with other programs. The table holds the slots of the stored
    descriptor, the primitive, the memory object and the buffer, then the index of the constant's
    argument.
    """
    name = f"{_PREFIX}_pack"
    if module.has(name):
        return name
    function = module.function(name, (POINTER,) * 3, internal=True)
    state, source, table = function.parameters
    engine = function.pointer(state, ENGINE_SLOT)
    primitive, described = function.pointer(state, function.word(table, 1)), function.stack_slot()
    function.check(function.call("dnnl_primitive_get_primitive_desc", primitive, described))
    argument = function.word(table, 4, i32)
    wanted = _query(function, function.load(described, POINTER), Query.EXEC_ARG_MD, argument)
    memory = function.slot(state, function.word(table, 2))
    kept = function.slot(state, function.word(table, 3))
    same = _address_of(function, "dnnl_memory_desc_equal", 2)
    found = function.call(FIND_PACKED, source, wanted, same, result=POINTER)
    function.store(found, kept)
    absent = function.compare("eq", found, function.null())
    (status,) = function.branch(
        absent,
        lambda: [function.call(_add_pack_anew(module), state, source, table, wanted)],
        lambda: [function.integer(0, i32)],
        i32,
    )
    function.check(status)
    buffer = function.load(kept, POINTER)
    function.finish(function.call("dnnl_memory_create", memory, wanted, engine, buffer))
    return name


def _add_pack_anew(module: ModuleBuilder) -> str:
    """Adds `i32 (state, source, table, wanted)`, which packs a constant that no other program has
    packed.

    The function allocates the packed copy, fills it and shares it.
    """
    name = f"{_PREFIX}_pack_anew"
    if module.has(name):
        return name
    function = module.function(name, (POINTER,) * 4, internal=True)
    state, source, table, wanted = function.parameters
    engine = function.pointer(state, ENGINE_SLOT)
    stored = function.pointer(state, function.word(table, 0))
    temporary = [function.stack_slot() for _ in range(4)]
    size = function.call("dnnl_memory_desc_get_size", wanted, result=i64)
    buffer = _allocate(function, size)
    function.store(buffer, function.slot(state, function.word(table, 3)))
    for slot, descriptor, data in ((0, wanted, buffer), (1, stored, source)):
        memory = function.call("dnnl_memory_create", temporary[slot], descriptor, engine, data)
        function.check(memory)
    attributes = function.null()
    function.check(
        function.call(
            "dnnl_reorder_primitive_desc_create",
            temporary[2],
            stored,
            engine,
            wanted,
            engine,
            attributes,
        )
    )
    reorder = function.load(temporary[2], POINTER)
    function.check(function.call("dnnl_primitive_create", temporary[3], reorder))
    _execute_reorder(function, state, temporary)
    for destroy, slot in (
        ("dnnl_primitive_destroy", temporary[3]),
        ("dnnl_primitive_desc_destroy", temporary[2]),
        ("dnnl_memory_destroy", temporary[1]),
        ("dnnl_memory_destroy", temporary[0]),
    ):
        function.call(destroy, function.load(slot, POINTER))
    of_layouts = [
        _address_of(function, f"dnnl_memory_desc_{name}", parameters)
        for name, parameters in (("equal", 2), ("clone", 2), ("destroy", 1))
    ]
    function.do(KEEP_PACKED, buffer, size, source, wanted, *of_layouts)
    function.finish(function.integer(0, i32))
    return name


def _address_of(function: FunctionBuilder, name: str, parameters: int) -> SSAValue:
    """Returns the address of a oneDNN function that takes pointers and returns a status."""
    function.module.declare(name, [POINTER] * parameters, i32)
    return function.address(name)


def _allocate(function: FunctionBuilder, size: SSAValue) -> SSAValue:
    """Allocates fresh memory, on huge pages if it fills at least one and Linux has them."""
    padded = function.add(size, 63)
    rounded = function.binary(llvm.AndOp, padded, function.integer(-64))
    page = function.integer(_HUGE_PAGE)
    fills_page = function.compare("sge", rounded, page)
    alignment = function.select(fills_page, page, function.integer(64))
    buffer = function.call("aligned_alloc", alignment, rounded, result=POINTER)
    absent = function.compare("eq", buffer, function.null())
    failure = function.integer(OUT_OF_MEMORY_STATUS, i32)
    function.check(function.select(absent, failure, function.integer(0, i32)))

    advice = function.integer(_USE_HUGE_PAGES, i32)
    function.when(fills_page, lambda: function.call("madvise", buffer, rounded, advice))
    return buffer


def _execute_reorder(
    function: FunctionBuilder, state: SSAValue, temporary: Sequence[SSAValue]
) -> None:
    """Executes the reorder in `temporary[3]` from the memory in `temporary[1]` to that in
    `temporary[0]`.
    """
    target, source = (function.load(memory, POINTER) for memory in temporary[:2])
    read, written = function.integer(Arg.SRC), function.integer(Arg.DST)
    pairs = function.stack_array((read, source, written, target))
    stream = function.pointer(state, LOAD_STREAM_SLOT)
    primitive = function.load(temporary[3], POINTER)
    two = function.integer(2, i32)
    function.check(function.call("dnnl_primitive_execute", primitive, stream, two, pairs))
    function.check(function.call("dnnl_stream_wait", stream))


def add_make_memories(module: ModuleBuilder) -> str:
    """Adds `i32 (state, context, workspace, table, count)`, which creates a context's memory
    objects.

    A row has the slots of the descriptor and of the memory object, and the offset in the workspace;
    -1 if each run sets the address.
    """
    name = f"{_PREFIX}_make_memories"
    if module.has(name):
        return name
    function = module.function(name, (*(POINTER,) * 4, i64), internal=True)
    state, context, workspace, table, count = function.parameters
    engine = function.pointer(state, ENGINE_SLOT)

    def create(index: SSAValue) -> None:
        row = function.slot(table, function.multiply(index, _MEMORY_WORDS))
        descriptor = function.pointer(state, function.word(row, 0))
        memory = function.slot(context, function.word(row, 1))
        offset = function.word(row, 2)
        is_outside = function.compare("slt", offset, function.integer(0))
        address = function.select(is_outside, function.null(), function.offset(workspace, offset))
        function.check(function.call("dnnl_memory_create", memory, descriptor, engine, address))

    function.loop(count, create)
    function.finish(function.integer(0, i32))
    return name


def add_fill_arguments(module: ModuleBuilder) -> str:
    """Adds `i32 (state, context, table, count)`, which fills the context's `dnnl_exec_arg_t`
    arrays.

    A row has the argument, whether its memory object is in the state, the object's slot, and the
    slot to fill.
    """
    name = f"{_PREFIX}_fill_arguments"
    if module.has(name):
        return name
    function = module.function(name, (*(POINTER,) * 3, i64), internal=True)
    state, context, table, count = function.parameters

    def fill(index: SSAValue) -> None:
        row = function.slot(table, function.multiply(index, _ARGUMENT_WORDS))
        in_context = function.compare("eq", function.word(row, 1), function.integer(0))
        base = function.select(in_context, context, state)
        memory = function.pointer(base, function.word(row, 2))
        pair = function.slot(context, function.word(row, 3))
        function.store(function.word(row, 0), pair)
        function.store(memory, function.slot(pair, 1))

    function.loop(count, fill)
    function.finish(function.integer(0, i32))
    return name


def add_destroy_all(module: ModuleBuilder, destroy: str) -> str:
    """Adds `i32 (slots, count)`, which destroys the objects in consecutive slots.

    Empty slots are skipped.
    """
    name = f"{_PREFIX}_{destroy}_all"
    if module.has(name):
        return name
    function = module.function(name, (POINTER, i64), internal=True)
    slots, count = function.parameters

    def body(index: SSAValue) -> None:
        held = function.pointer(slots, index)
        if destroy == FREE_PACKED:
            function.do(destroy, held)
        else:
            function.call(destroy, held)

    function.loop(count, body)
    function.finish(function.integer(0, i32))
    return name
