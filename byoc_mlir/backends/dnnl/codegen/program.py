"""Numbered objects and executions of a region's code, the input of `emit.py`."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.base import OpDetail
from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.codegen.own_code import Generated, OwnCode
from byoc_mlir.backends.dnnl.codegen.places import (
    Place,
    Stored,
    Workspace,
    places_of,
    workspace_bytes,
)
from byoc_mlir.backends.dnnl.codegen.selection import Instead, SelectedPrimitive, select
from byoc_mlir.backends.dnnl.codegen.signals import moves_stack_pointer
from byoc_mlir.backends.dnnl.library import calls
from byoc_mlir.backends.dnnl.primitives.descriptions import Operand, data_type_of
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.errors import CompilationError
from byoc_mlir.onednn.constants import Arg, DataType
from byoc_mlir.onednn.primitives import PrimitiveDescriptor

T = TypeVar("T", bound=Hashable)

_PACKED_TYPES = {"float32": DataType.F32, "int32": DataType.S32}
"""oneDNN's types of weights that built-in kernels packed, by NumPy's name."""


class Numbered(Generic[T]):
    """Distinct items, numbered in the order of their first request."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._numbers: dict[T, int] = {}

    def number(self, item: T) -> int:
        """Returns the item's number; a new item gets the next one."""
        if item not in self._numbers:
            self._numbers[item] = self.append(item)
        return self._numbers[item]

    def append(self, item: T) -> int:
        """Appends an item, even if the sequence contains it already, and returns its new number."""
        self.items.append(item)
        return len(self.items) - 1


@dataclass(frozen=True)
class ConstantMemory:
    """Memory object of a constant in its stored layout."""

    weight: Weight
    descriptor: int


@dataclass(frozen=True)
class PackedMemory:
    """Memory object of a constant in the layout that a primitive requires."""

    weight: Weight
    stored: int
    primitive: int
    argument: int


@dataclass(frozen=True)
class ContextMemory:
    """Memory object for a context's memory: inputs, outputs and workspace."""

    descriptor: int
    place: Place


@dataclass(frozen=True)
class MemoryRef:
    """Reference to the memory object of an argument."""

    kind: str
    """`constant`, `packed` or `context`."""
    number: int


@dataclass(frozen=True)
class CreatedPrimitive:
    """Primitive, with its planned scratchpad and its number of threads."""

    call: calls.PrimitiveCall
    scratchpad_bytes: int
    threads: int | None


@dataclass(frozen=True)
class Execution:
    """One call of `dnnl_primitive_execute`, or of built-in code."""

    code: int | Generated
    arguments: tuple[tuple[int, MemoryRef], ...]
    threads: int | None
    """OpenMP threads of the call; `None` for all threads of the run."""
    is_concurrent: bool = False
    """True if the call runs at the same time as the previous call."""
    moves_stack_pointer: bool = False
    """True if the call moves the stack pointer, so that signals must be blocked."""
    nan_safe: tuple[Execution, ...] = ()
    """Executions that replace the call, in order, if an input has a NaN or an infinity."""
    detail: OpDetail | None = None
    """Entry of the report."""

    @property
    def parts(self) -> tuple[Execution, ...]:
        """Returns the execution, then its NaN-safe replacements."""
        return (self, *self.nan_safe)


@dataclass(frozen=True)
class NonFiniteCheck:
    """Number and type of a tensor's elements to check for NaN and infinities."""

    count: int
    element: Attribute


@dataclass
class RegionProgram:
    """All objects and executions of a region's code, in order."""

    workspace_bytes: int = 0
    descriptors: Numbered[calls.MemoryDescriptor] = field(
        default_factory=Numbered[calls.MemoryDescriptor]
    )
    attributes: Numbered[calls.Attributes] = field(default_factory=Numbered[calls.Attributes])
    primitives: Numbered[CreatedPrimitive] = field(default_factory=Numbered[CreatedPrimitive])
    constants: Numbered[ConstantMemory] = field(default_factory=Numbered[ConstantMemory])
    packed: list[PackedMemory] = field(default_factory=list[PackedMemory])
    memories: Numbered[ContextMemory] = field(default_factory=Numbered[ContextMemory])
    executions: list[Execution] = field(default_factory=list[Execution])
    weights: dict[str, Weight] = field(default_factory=dict[str, Weight])
    details: list[OpDetail] = field(default_factory=list[OpDetail])
    input_floats: tuple[NonFiniteCheck, ...] = ()


def make_program(func: FuncOp, threads: int) -> RegionProgram:
    """Builds the program of a region after all passes: numbered objects and executions.

    Args:
        func: the region.
        threads: the OpenMP threads of a run.

    Raises:
        CompilationError: oneDNN has no implementation for one of the ops, or the passes did not
          run as they do in `pipeline`.
    """
    found = [
        _selected(op, threads) for op in func.body.block.ops if isinstance(op, dnnl.ExecutedOp)
    ]
    floats = tuple(_floats(value) for value in func.body.block.args)
    program = RegionProgram(workspace_bytes(func), input_floats=floats)
    maker = _Maker(program, places_of(func))
    for one in found:
        maker.add(one)
    return maker.program


def _floats(value: SSAValue) -> NonFiniteCheck:
    is_float = data_type_of(value) in (DataType.F32, DataType.BF16)
    count = math.prod(shape_of(value)) if is_float else 0
    return NonFiniteCheck(count, tensor_type(value).element_type)


def _selected(op: dnnl.ExecutedOp, threads: int) -> SelectedPrimitive | OwnCode:
    """Selects the implementation of an op; fails unless the passes recorded the same one."""
    found = select(op, threads)
    expected = "nothing" if op.implementation is None else op.implementation.data
    if expected != found.implementation:
        raise CompilationError(
            f"{op.name}: its implementation is {expected}, found {found.implementation}; run the"
            f" pass select-dnnl-primitives{{threads={threads}}}"
        )
    return found


class _Maker:
    def __init__(self, program: RegionProgram, places: Mapping[SSAValue, Place]):
        self.program = program
        self._places = places
        self._packers: dict[tuple[str, int, int], dict[int, PrimitiveDescriptor]] = {}

    def add(self, found: SelectedPrimitive | OwnCode) -> None:
        detail = _detail(found)
        self.program.details.append(detail)
        execution = self._own(found) if isinstance(found, OwnCode) else self._with_nan_safe(found)
        nan_safe = tuple(replace(one, detail=detail) for one in execution.nan_safe)
        self.program.executions.append(replace(execution, nan_safe=nan_safe, detail=detail))

    def _with_nan_safe(self, found: SelectedPrimitive) -> Execution:
        is_concurrent = bool(found.op.concurrent.value.data)
        execution = replace(self._execution(found), is_concurrent=is_concurrent)
        if found.instead is None:
            return execution
        return replace(execution, nan_safe=self._nan_safe(found.instead))

    def _execution(self, found: SelectedPrimitive) -> Execution:
        call = found.primitive.call
        self._number_arguments(call)
        scratchpad = found.descriptor.scratchpad_bytes
        created = CreatedPrimitive(call, scratchpad, found.op.own_threads)
        number = self.program.primitives.number(created)
        arguments = [
            (operand.argument, self._argument(operand, number, found))
            for operand in found.primitive.operands
        ]
        if scratchpad:
            arguments.append((Arg.SCRATCHPAD, self._scratchpad(found.op, scratchpad)))
        moves = moves_stack_pointer(call.kind, found.implementation)
        threads = found.op.own_threads
        return Execution(number, tuple(arguments), threads, moves_stack_pointer=moves)

    def _nan_safe(self, instead: Instead) -> tuple[Execution, ...]:
        bare, nan_safe_ = self._execution(instead.bare), instead.nan_safe
        arguments = [(one.argument, self._memory(one)) for one in nan_safe_.operands]
        return bare, Execution(nan_safe_.code, tuple(arguments), bare.threads)

    def _own(self, found: OwnCode) -> Execution:
        arguments: list[tuple[int, MemoryRef]] = []
        if found.scratchpad_bytes:
            scratchpad = self._scratchpad(found.op, found.scratchpad_bytes)
            arguments.append((Arg.SCRATCHPAD, scratchpad))
        if found.packed is not None:
            weights = found.packed()
            data_type = _PACKED_TYPES[weights.data.dtype.name]
            stored = calls.MemoryDescriptor.plain(weights.data.shape, data_type)
            arguments.append((Arg.WEIGHTS, self._constant(weights, stored)))
        arguments += [(one.argument, self._memory(one)) for one in found.operands]
        return Execution(found.code, tuple(arguments), found.op.own_threads)

    def _scratchpad(self, op: dnnl.ExecutedOp, size: int) -> MemoryRef:
        planned, offset = op.scratchpad_bytes, op.scratchpad_offset
        if planned is None or offset is None or size > planned.value.data:
            raise CompilationError(
                f"{op.name} needs {size} bytes of scratchpad, planned are"
                f" {0 if planned is None else planned.value.data}; run the passes"
                " select-dnnl-primitives and place-dnnl-buffers with the threads of a run"
            )
        descriptor = calls.MemoryDescriptor.plain((size,), DataType.U8)
        return self._context_memory(descriptor, Workspace(offset.value.data))

    def _number_arguments(self, call: calls.PrimitiveCall) -> None:
        for argument in call.arguments:
            if isinstance(argument, calls.MemoryDescriptor):
                self.program.descriptors.number(argument)
            elif isinstance(argument, calls.Attributes):
                self.program.attributes.number(argument)
                for post_op in argument.post_ops:
                    if isinstance(post_op, calls.Binary):
                        self.program.descriptors.number(post_op.other)

    def _argument(self, operand: Operand, number: int, found: SelectedPrimitive) -> MemoryRef:
        place = self._places[operand.value]
        if not operand.packed:
            return self._memory(operand)
        assert isinstance(place, Stored)
        weight = place.constant.weight
        self.program.weights[weight.digest] = weight
        descriptor = self.program.descriptors.number(operand.descriptor)
        packed = PackedMemory(weight, descriptor, number, operand.argument)
        return MemoryRef("packed", self._pack(packed, found.descriptor))

    def _memory(self, operand: Operand) -> MemoryRef:
        """Returns the memory object of a tensor in its own layout."""
        place = self._places[operand.value]
        if isinstance(place, Stored):
            return self._constant(place.constant.weight, operand.descriptor)
        return self._context_memory(operand.descriptor, place)

    def _constant(self, weight: Weight, descriptor: calls.MemoryDescriptor) -> MemoryRef:
        self.program.weights[weight.digest] = weight
        constant = ConstantMemory(weight, self.program.descriptors.number(descriptor))
        return MemoryRef("constant", self.program.constants.number(constant))

    def _pack(self, packed: PackedMemory, descriptor: PrimitiveDescriptor) -> int:
        """Returns the number of the packed memory; uses of one weight in one layout share it."""
        key = (packed.weight.digest, packed.stored, packed.argument)
        packers = self._packers.setdefault(key, {})
        wanted = descriptor.descriptor(packed.argument)
        for index, packer in packers.items():
            if wanted.is_same(packer.descriptor(packed.argument)):
                return index
        self.program.packed.append(packed)
        index = len(self.program.packed) - 1
        packers[index] = descriptor
        return index

    def _context_memory(self, descriptor: calls.MemoryDescriptor, place: Place) -> MemoryRef:
        number = self.program.descriptors.number(descriptor)
        memory = ContextMemory(number, place)
        return MemoryRef("context", self.program.memories.number(memory))


def _detail(found: SelectedPrimitive | OwnCode) -> OpDetail:
    implementation, latency = found.implementation, found.op.milliseconds
    milliseconds = None if latency is None else latency.value.data
    layout, is_slow = dnnl.layout_of(found.op.results[0]), implementation.startswith("ref")
    note = f"{layout}, a reference implementation, slow" if is_slow else layout
    if (
        isinstance(found.op, dnnl.ConvolutionOp | dnnl.QuantizedConvolutionOp)
        and found.op.too_large
    ):
        note += f", weights of {found.op.too_large.data} would be too large"
    return OpDetail(node_names(found.op), implementation, milliseconds, note, is_slow)
