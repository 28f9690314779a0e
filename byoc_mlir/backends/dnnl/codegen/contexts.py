"""Objects that a region creates for each context: memory objects and execution arguments."""

from __future__ import annotations

from byoc_mlir.backends.dnnl.codegen import helpers
from byoc_mlir.backends.dnnl.codegen.places import Workspace
from byoc_mlir.backends.dnnl.codegen.region_code import RegionFunctions, create_stream
from byoc_mlir.backends.dnnl.codegen.slot_layout import STREAM_SLOT
from byoc_mlir.kernels.builder import POINTER


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
