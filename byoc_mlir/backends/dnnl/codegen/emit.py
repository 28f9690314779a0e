"""The five functions of a region, from its program."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from byoc_mlir.abi import FREE_PACKED, weight_symbol
from byoc_mlir.backends.base import NativeCode
from byoc_mlir.backends.dnnl import enums
from byoc_mlir.backends.dnnl.calls import (
    Attributes,
    Binary,
    Descriptors,
    Eltwise,
    PostOp,
    Prelu,
)
from byoc_mlir.backends.dnnl.codegen import helpers
from byoc_mlir.backends.dnnl.codegen.executions import Group, Threads, groups, step_of
from byoc_mlir.backends.dnnl.codegen.helpers import (
    ENGINE_SLOT,
    LOAD_STREAM_SLOT,
    Slots,
)
from byoc_mlir.backends.dnnl.codegen.own_code import Generated
from byoc_mlir.backends.dnnl.codegen.places import Input, Output, Workspace
from byoc_mlir.backends.dnnl.codegen.program import Execution, Program
from byoc_mlir.backends.dnnl.codegen.side_by_side import run_side_by_side
from byoc_mlir.backends.dnnl.codegen.slot_layout import STREAM_SLOT, SlotLayout, slot_layout
from byoc_mlir.backends.dnnl.codegen.special_values import add_any_special
from byoc_mlir.backends.steps import mark_step
from byoc_mlir.kernels.builder import (
    POINTER,
    VOID,
    FunctionBuilder,
    ModuleBuilder,
)
from byoc_mlir.runtime.program import SharedLibrary


def emit(
    program: Program,
    symbol: str,
    inputs: int,
    outputs: int,
    libraries: Sequence[SharedLibrary],
    shared: ModuleBuilder,
) -> NativeCode:
    """The native code of the region `symbol`; functions that others need too go to `shared`."""
    runs = _number_runs(program)
    layout = slot_layout(program)
    emitter = _Emitter(program, symbol, layout, runs, shared)
    emitter.emit_load()
    emitter.emit_open()
    emitter.emit_run(inputs, outputs)
    emitter.emit_close()
    emitter.emit_unload()
    return NativeCode(
        module=emitter.module.module,
        shared=shared.module,
        state_slots=layout.state_slots,
        context_slots=layout.context_slots,
        workspace_bytes=program.workspace_bytes,
        constants=tuple(program.weights.values()),
        libraries=tuple(libraries),
        details=tuple(program.details),
    )


def _number_runs(program: Program) -> dict[Descriptors, int]:
    """Gives every array of descriptors consecutive numbers of its own; the first of each."""
    runs: dict[Descriptors, int] = {}
    for created in program.primitives.items:
        for argument in created.call.arguments:
            if isinstance(argument, Descriptors) and argument not in runs:
                runs[argument] = len(program.descriptors.items)
                for item in argument.items:
                    program.descriptors.append(item)
    return runs


class _Emitter:
    def __init__(
        self,
        program: Program,
        symbol: str,
        layout: SlotLayout,
        runs: dict[Descriptors, int],
        shared: ModuleBuilder,
    ):
        self.module, self._shared = ModuleBuilder(), shared
        self._program, self._symbol, self._layout = program, symbol, layout
        first = layout.descriptors
        self._slots = Slots(
            {one: first + n for n, one in reversed([*enumerate(program.descriptors.items)])},
            {run: first + number for run, number in runs.items()},
            {one: layout.attributes + n for n, one in enumerate(program.attributes.items)},
        )

    def _table(self, name: str, rows: Sequence[Sequence[int]]) -> str:
        words = [word for row in rows for word in row]
        return self.module.table(f"{self._symbol}_{name}", words or [0])

    def _helper(self, name: str) -> str:
        return f"{self._symbol}_{name}"

    def emit_load(self) -> None:
        """`R_load`: descriptors, attributes, primitives, then constants, packed where asked."""
        program, layout = self._program, self._layout
        make_descriptors = helpers.add_make_descriptors(self._shared)
        pack = helpers.add_pack(self._shared) if program.packed else ""
        makers = [
            helpers.add_make_primitive(self._shared, created.call)
            for created in program.primitives.items
        ]
        rows = [helpers.descriptor_words(one) for one in program.descriptors.items]
        descriptors = self._table("descriptors", rows)
        function = self.module.function(self._helper("load"), (POINTER,))
        (state,) = function.parameters
        self._create_engine(function, state)
        function.check(
            function.call(
                make_descriptors,
                function.slot(state, layout.descriptors),
                function.address(descriptors),
                function.integer(len(rows)),
            )
        )
        for number, attributes in enumerate(program.attributes.items):
            slot = function.slot(state, layout.attributes + number)
            self._create_attributes(function, state, slot, attributes)
        threads = Threads(function)
        for number, (maker, created) in enumerate(
            zip(makers, program.primitives.items, strict=True)
        ):
            threads.use(created.threads)
            words = [layout.primitives + number, created.scratchpad_bytes]
            for argument in created.call.arguments:
                words += helpers.argument_words(argument, self._slots)
            table = self._table(f"primitive_{number}", [words])
            function.check(function.call(maker, state, function.address(table)))
        threads.use(None)
        self._create_constants(function, state)
        self._pack_constants(function, state, pack)
        function.finish(function.integer(0, i32))

    def _create_engine(self, function: FunctionBuilder, state: SSAValue) -> None:
        kind, index = function.integer(enums.CPU, i32), function.integer(0)
        slot = function.slot(state, ENGINE_SLOT)
        function.check(function.call("dnnl_engine_create", slot, kind, index))
        self._create_stream(function, state, function.slot(state, LOAD_STREAM_SLOT))

    def _create_stream(self, function: FunctionBuilder, state: SSAValue, slot: SSAValue) -> None:
        engine = function.pointer(state, ENGINE_SLOT)
        flags = function.integer(enums.IN_ORDER, i32)
        function.check(function.call("dnnl_stream_create", slot, engine, flags))

    def _create_attributes(
        self, function: FunctionBuilder, state: SSAValue, slot: SSAValue, attributes: Attributes
    ) -> None:
        function.check(function.call("dnnl_primitive_attr_create", slot))
        created = function.load(slot, POINTER)
        mode = function.integer(enums.USER_SCRATCHPAD, i32)
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
            function.check(self._append(function, state, chain, post_op))
        function.check(function.call("dnnl_primitive_attr_set_post_ops", created, chain))
        function.check(function.call("dnnl_post_ops_destroy", chain))

    def _append(
        self, function: FunctionBuilder, state: SSAValue, chain: SSAValue, post_op: PostOp
    ) -> SSAValue:
        if isinstance(post_op, Eltwise):
            algorithm = function.integer(post_op.algorithm, i32)
            alpha, beta = function.real(post_op.alpha), function.real(post_op.beta)
            return function.call("dnnl_post_ops_append_eltwise", chain, algorithm, alpha, beta)
        if isinstance(post_op, Binary):
            algorithm = function.integer(post_op.algorithm, i32)
            other = function.pointer(state, self._slots.descriptors[post_op.other])
            return function.call("dnnl_post_ops_append_binary", chain, algorithm, other)
        if isinstance(post_op, Prelu):
            mask = function.integer(post_op.mask, i32)
            return function.call("dnnl_post_ops_append_prelu", chain, mask)
        zero, data_type = function.integer(0, i32), function.integer(enums.DataType.UNDEFINED, i32)
        return function.call("dnnl_post_ops_append_sum", chain, function.real(1.0), zero, data_type)

    def _source(self, function: FunctionBuilder, digest: str) -> SSAValue:
        return function.address(self.module.external(weight_symbol(digest)))

    def _create_constants(self, function: FunctionBuilder, state: SSAValue) -> None:
        if not self._program.constants.items:
            return
        engine = function.pointer(state, ENGINE_SLOT)
        for number, constant in enumerate(self._program.constants.items):
            slot = function.slot(state, self._layout.constants + number)
            descriptor = function.pointer(state, self._layout.descriptors + constant.descriptor)
            source = self._source(function, constant.weight.digest)
            function.check(function.call("dnnl_memory_create", slot, descriptor, engine, source))

    def _pack_constants(self, function: FunctionBuilder, state: SSAValue, pack: str) -> None:
        layout = self._layout
        for number, packed in enumerate(self._program.packed):
            words = [
                layout.descriptors + packed.stored,
                layout.primitives + packed.primitive,
                layout.packed + number,
                layout.buffers + number,
                packed.argument,
            ]
            table = function.address(self._table(f"pack_{number}", [words]))
            source = self._source(function, packed.weight.digest)
            function.check(function.call(pack, state, source, table))

    def emit_open(self) -> None:
        """`R_open`: the stream, memory objects, and the arguments of every execution."""
        layout, program = self._layout, self._program
        make_memories = helpers.add_make_memories(self._shared)
        fill_arguments = helpers.add_fill_arguments(self._shared)
        memories = self._memory_rows()
        arguments = self._argument_rows(program.executions)
        function = self.module.function(self._helper("open"), (POINTER,) * 3)
        state, context, workspace = function.parameters
        self._create_stream(function, state, function.slot(context, STREAM_SLOT))
        table = function.address(self._table("memories", memories))
        count = function.integer(len(memories))
        function.check(function.call(make_memories, state, context, workspace, table, count))
        table = function.address(self._table("arguments", arguments))
        count = function.integer(len(arguments))
        function.finish(function.call(fill_arguments, state, context, table, count))
        assert layout.context_slots == layout.arguments + 2 * len(arguments)

    def _memory_rows(self) -> list[list[int]]:
        layout = self._layout
        return [
            helpers.memory_words(
                layout.descriptors + memory.descriptor,
                layout.memories + number,
                memory.place.offset if isinstance(memory.place, Workspace) else -1,
            )
            for number, memory in enumerate(self._program.memories.items)
        ]

    def _argument_rows(self, executions: Sequence[Execution]) -> list[list[int]]:
        layout, rows = self._layout, list[list[int]]()
        parts = (part for execution in executions for part in execution.parts)
        for argument, memory in (pair for part in parts for pair in part.arguments):
            destination = layout.arguments + 2 * len(rows)
            in_state = memory.kind != "context"
            slot = layout.memory_slot(memory)
            rows.append(helpers.exec_argument_words(argument, in_state, slot, destination))
        return rows

    def emit_run(self, inputs: int, outputs: int) -> None:
        """`R`: points the memory objects at inputs and outputs, then executes."""
        layout, program = self._layout, self._program
        function = self.module.function(self._symbol, (POINTER,) * (2 + inputs + outputs))
        state, context, *tensors = function.parameters
        for number, memory in enumerate(program.memories.items):
            if isinstance(memory.place, Input | Output):
                first = inputs if isinstance(memory.place, Output) else 0
                held = function.pointer(context, layout.memories + number)
                tensor = tensors[first + memory.place.index]
                if memory.place.offset:
                    tensor = function.offset(tensor, function.integer(memory.place.offset))
                function.check(function.call("dnnl_memory_set_data_handle", held, tensor))
        status = function.integer(0, i32)
        special = self._special(function, tensors[:inputs])
        threads = Threads(function)
        for group in groups(program.executions, layout.arguments):
            threads.use(group[0][0].threads)
            result = self._run_group(function, state, context, group, special)
            status = function.binary(llvm.OrOp, status, result)
        threads.use(None)
        waited = function.call("dnnl_stream_wait", function.pointer(context, STREAM_SLOT))
        function.finish(function.binary(llvm.OrOp, status, waited))

    def _special(self, function: FunctionBuilder, inputs: Sequence[SSAValue]) -> SSAValue | None:
        """Whether an input or weight has a NaN or an infinity; `None` if it makes no difference."""
        program = self._program
        if not any(execution.careful for execution in program.executions):
            return None
        if not all(np.isfinite(weight.data).all() for weight in program.weights.values()):
            return function.compare("eq", function.integer(0), function.integer(0))
        found = function.integer(0, i32)
        for tensor, floats in zip(inputs, program.input_floats, strict=True):
            if not floats.count:
                continue
            look = add_any_special(self._shared, floats.element)
            one = function.call(look, tensor, function.integer(floats.count))
            found = function.binary(llvm.OrOp, found, one)
        return function.compare("ne", found, function.integer(0, i32))

    def _run_group(
        self,
        function: FunctionBuilder,
        state: SSAValue,
        context: SSAValue,
        group: Group,
        special: SSAValue | None,
    ) -> SSAValue:
        """The status of one execution, or of several that run at the same time."""
        if len(group) > 1:

            def member(
                inner: FunctionBuilder, state: SSAValue, context: SSAValue, n: int
            ) -> SSAValue:
                return self._execute(inner, state, context, *group[n])

            name = self._helper(f"beside_{group[0][1]}")
            return run_side_by_side(
                function, name, (state, context), len(group), member, step_of(group)
            )
        ((execution, first),) = group
        if special is None or not execution.careful:
            return self._execute(function, state, context, execution, first)

        def carefully() -> SSAValue:
            status, slot = function.integer(0, i32), first
            for before, part in pairwise(execution.parts):
                slot += 2 * len(before.arguments)
                result = self._execute(function, state, context, part, slot)
                status = function.binary(llvm.OrOp, status, result)
            return status

        return function.branch(
            special,
            carefully,
            lambda: self._execute(function, state, context, execution, first),
            i32,
        )

    def _execute(
        self,
        function: FunctionBuilder,
        state: SSAValue,
        context: SSAValue,
        execution: Execution,
        first: int,
    ) -> SSAValue:
        """The status of one execution whose arguments stand in the context from a slot on."""
        pairs = function.slot(context, first)
        if isinstance(execution.code, Generated):
            table = self._table(f"table_{first}", [execution.code.words])
            kernel = execution.code.add(self._shared)
            status = function.call(kernel, pairs, function.address(table))
        else:
            primitive = function.pointer(state, self._layout.primitives + execution.code)
            stream = function.pointer(context, STREAM_SLOT)
            count = function.integer(len(execution.arguments), i32)
            status = function.call("dnnl_primitive_execute", primitive, stream, count, pairs)
        detail = execution.detail
        if detail is not None and isinstance(status.owner, Operation):
            mark_step(status.owner, detail.nodes, detail.implementation, detail.note)
        return status

    def emit_close(self) -> None:
        """`R_close`: what `R_open` made."""
        layout = self._layout
        function = self.module.function(self._helper("close"), (POINTER,) * 2, result=VOID)
        _, context = function.parameters
        self._destroy(function, context, "dnnl_memory_destroy", layout.memories, layout.arguments)
        function.call("dnnl_stream_destroy", function.pointer(context, STREAM_SLOT))
        function.finish()

    def emit_unload(self) -> None:
        """`R_unload`: what `R_load` made, users before what they use."""
        layout = self._layout
        function = self.module.function(self._helper("unload"), (POINTER,), result=VOID)
        (state,) = function.parameters
        for destroy, first, end in (
            ("dnnl_memory_destroy", layout.constants, layout.buffers),
            (FREE_PACKED, layout.buffers, layout.state_slots),
            ("dnnl_primitive_destroy", layout.primitives, layout.constants),
            ("dnnl_primitive_attr_destroy", layout.attributes, layout.primitives),
            ("dnnl_memory_desc_destroy", layout.descriptors, layout.attributes),
        ):
            self._destroy(function, state, destroy, first, end)
        function.call("dnnl_stream_destroy", function.pointer(state, LOAD_STREAM_SLOT))
        function.call("dnnl_engine_destroy", function.pointer(state, ENGINE_SLOT))
        function.finish()

    def _destroy(
        self, function: FunctionBuilder, slots: SSAValue, destroy: str, first: int, end: int
    ) -> None:
        name = helpers.add_destroy_all(self._shared, destroy)
        count = function.integer(end - first)
        function.call(name, function.slot(slots, first), count)
