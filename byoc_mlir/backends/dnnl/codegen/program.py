"""The objects that a region's code makes, numbered: what `emit.py` writes down."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from byoc_mlir.backends.base import OpDetail
from byoc_mlir.backends.dnnl import layouts
from byoc_mlir.backends.dnnl.api import PrimitiveDescriptor, api, openmp_threads
from byoc_mlir.backends.dnnl.calls import (
    Argument,
    Attributes,
    Binary,
    MemoryDescriptor,
    PrimitiveCall,
)
from byoc_mlir.backends.dnnl.codegen.careful import Careful, careful
from byoc_mlir.backends.dnnl.codegen.own_code import Generated, OwnCode, own_code
from byoc_mlir.backends.dnnl.codegen.places import (
    Place,
    Places,
    Stored,
    assign_places,
)
from byoc_mlir.backends.dnnl.descriptions import Operand, Primitive, data_type_of
from byoc_mlir.backends.dnnl.dialect import ExecutedOp, layout_of
from byoc_mlir.backends.dnnl.enums import Arg, DataType
from byoc_mlir.backends.dnnl.primitives import primitive
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import ConstantOp, Weight
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.errors import CompilationError

T = TypeVar("T", bound=Hashable)


class Numbered(Generic[T]):
    """Distinct items in the order in which they were first asked for."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._numbers: dict[T, int] = {}

    def number(self, item: T) -> int:
        """The item's number; a new item gets the next one."""
        if item not in self._numbers:
            self._numbers[item] = self.append(item)
        return self._numbers[item]

    def append(self, item: T) -> int:
        """A number of its own for an item that may be there already."""
        self.items.append(item)
        return len(self.items) - 1


@dataclass(frozen=True)
class ConstantMemory:
    """A memory object over a constant as it is stored."""

    weight: Weight
    descriptor: int


@dataclass(frozen=True)
class PackedMemory:
    """A memory object over a constant in the layout that a primitive asks for."""

    weight: Weight
    stored: int
    primitive: int
    argument: int


@dataclass(frozen=True)
class ContextMemory:
    """A memory object over memory that a context has while it runs."""

    descriptor: int
    place: Place


@dataclass(frozen=True)
class MemoryRef:
    """Which memory object an argument is."""

    kind: str
    """`constant`, `packed` or `context`."""
    number: int


@dataclass(frozen=True)
class CreatedPrimitive:
    """A primitive, the most scratchpad that was planned for it, and the threads that run it."""

    call: PrimitiveCall
    scratchpad_bytes: int
    threads: int | None


@dataclass(frozen=True)
class Execution:
    """One call: of `dnnl_primitive_execute` for a primitive, or of code of our own."""

    code: int | Generated
    arguments: tuple[tuple[int, MemoryRef], ...]
    threads: int | None
    """Those that run it; `None`: all that the run has."""
    is_concurrent: bool = False
    """Whether it runs at the same time as the one before."""
    careful: tuple[Execution, ...] = ()
    """What runs instead, one after the other, where an input has a NaN or an infinity."""

    @property
    def parts(self) -> tuple[Execution, ...]:
        """Itself and what may run instead."""
        return (self, *self.careful)


@dataclass
class Program:
    """Everything a region's code makes and does, in order."""

    workspace_bytes: int = 0
    descriptors: Numbered[MemoryDescriptor] = field(default_factory=Numbered[MemoryDescriptor])
    attributes: Numbered[Attributes] = field(default_factory=Numbered[Attributes])
    primitives: Numbered[CreatedPrimitive] = field(default_factory=Numbered[CreatedPrimitive])
    constants: Numbered[ConstantMemory] = field(default_factory=Numbered[ConstantMemory])
    packed: list[PackedMemory] = field(default_factory=list[PackedMemory])
    memories: Numbered[ContextMemory] = field(default_factory=Numbered[ContextMemory])
    executions: list[Execution] = field(default_factory=list[Execution])
    weights: dict[str, Weight] = field(default_factory=dict[str, Weight])
    details: list[OpDetail] = field(default_factory=list[OpDetail])
    input_elements: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Instead:
    """What computes an op where there are NaN or infinities."""

    bare: _Found
    careful: Careful


@dataclass(frozen=True)
class _Found:
    """An op with its primitive and what oneDNN chose for it."""

    op: ExecutedOp
    primitive: Primitive
    descriptor: PrimitiveDescriptor
    instead: _Instead | None = None

    @property
    def scratchpad_bytes(self) -> int:
        """The memory that is needed beside the operands and the result."""
        careful = 0 if self.instead is None else self.instead.bare.scratchpad_bytes
        return max(self.descriptor.scratchpad_bytes, careful)

    @property
    def implementation(self) -> str:
        """What the report calls it."""
        return self.descriptor.implementation


def make_program(func: FuncOp, threads: int) -> Program:
    """Numbers everything that running a region takes, after all passes.

    Args:
        func: the region.
        threads: the OpenMP threads of a run.

    Raises:
        CompilationError: oneDNN has no implementation for one of the ops.
    """
    found = [
        _find(op, op.own_threads or threads)
        for op in func.body.block.ops
        if isinstance(op, ExecutedOp)
    ]
    scratchpads = {one.op: one.scratchpad_bytes for one in found}
    places = assign_places(func, scratchpads)
    elements = tuple(_numbers(value) for value in func.body.block.args)
    maker = _Maker(Program(places.workspace_bytes, input_elements=elements), places)
    for one in found:
        maker.add(one)
    return maker.program


def _numbers(value: SSAValue) -> int:
    """How many numbers a tensor holds that may be NaN or infinite."""
    is_float = data_type_of(value) == DataType.F32
    return math.prod(shape_of(value)) if is_float else 0


def _find(op: ExecutedOp, threads: int) -> _Found | OwnCode:
    own = own_code(op, threads)
    if own is not None:
        return own
    described = primitive(op)
    assert described is not None
    with openmp_threads(threads):
        descriptor = api().find(described.call)
        if descriptor is None:
            nodes = ", ".join(node_names(op)) or op.name
            raise CompilationError(f"oneDNN has no implementation for {nodes}: {op}")
        primitive_, descriptor = _pinned(described, descriptor)
    return _Found(op, primitive_, descriptor, _instead(op, threads))


def _instead(op: ExecutedOp, threads: int) -> _Instead | None:
    found = careful(op)
    if found is None:
        return None
    bare = found.bare
    described = primitive(bare)
    assert described is not None
    operands = tuple(
        replace(one, value=op.results[0]) if one.value is bare.results[0] else one
        for one in described.operands
    )
    bare.erase()
    described = replace(described, operands=operands)
    with openmp_threads(threads):
        descriptor = api().find(described.call)
        if descriptor is None:
            return None
        return _Instead(_Found(op, *_pinned(described, descriptor)), found)


def _pinned(
    described: Primitive, descriptor: PrimitiveDescriptor
) -> tuple[Primitive, PrimitiveDescriptor]:
    """With the weights as they are stored, if the library asks for them so and then runs the same
    code: they need no packing. What it needs otherwise, such as scratchpad, may differ.
    """
    packed = [operand for operand in described.operands if operand.packed]
    if not packed or not all(descriptor.wants(one.argument, one.descriptor) for one in packed):
        return described, descriptor
    stored = {operand.descriptor.dims: operand.descriptor for operand in packed}
    arguments: list[Argument] = [
        stored[argument.dims]
        if isinstance(argument, MemoryDescriptor) and argument.layout == layouts.ANY
        else argument
        for argument in described.call.arguments
    ]
    call = replace(described.call, arguments=tuple(arguments))
    found = api().find(call)
    if found is None or found.implementation != descriptor.implementation:
        return described, descriptor
    return Primitive(call, tuple(replace(one, packed=False) for one in described.operands)), found


class _Maker:
    def __init__(self, program: Program, places: Places):
        self.program = program
        self._places = places
        self._packers: dict[tuple[str, int, int], dict[int, PrimitiveDescriptor]] = {}

    def add(self, found: _Found | OwnCode) -> None:
        self.program.details.append(_detail(found))
        if isinstance(found, OwnCode):
            self._add_own(found)
            return
        is_concurrent = bool(found.op.concurrent.value.data)
        execution = replace(self._execution(found), is_concurrent=is_concurrent)
        if found.instead is not None:
            execution = replace(execution, careful=self._careful(found.instead))
        self.program.executions.append(execution)

    def _execution(self, found: _Found) -> Execution:
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
        return Execution(number, tuple(arguments), found.op.own_threads)

    def _careful(self, instead: _Instead) -> tuple[Execution, ...]:
        bare, careful_ = self._execution(instead.bare), instead.careful
        arguments = [(one.argument, self._memory(one)) for one in careful_.operands]
        return bare, Execution(careful_.code, tuple(arguments), bare.threads)

    def _add_own(self, found: OwnCode) -> None:
        arguments: list[tuple[int, MemoryRef]] = []
        if found.scratchpad_bytes:
            scratchpad = self._scratchpad(found.op, found.scratchpad_bytes)
            arguments.append((Arg.SCRATCHPAD, scratchpad))
        if found.weights is not None:
            stored = MemoryDescriptor.plain(found.weights.data.shape)
            arguments.append((Arg.WEIGHTS, self._constant(found.weights, stored)))
        arguments += [(one.argument, self._memory(one)) for one in found.operands]
        execution = Execution(found.code, tuple(arguments), found.op.own_threads)
        self.program.executions.append(execution)

    def _scratchpad(self, op: ExecutedOp, size: int) -> MemoryRef:
        descriptor = MemoryDescriptor.plain((size,), DataType.U8)
        return self._context_memory(descriptor, self._places.scratchpads[op])

    def _number_arguments(self, call: PrimitiveCall) -> None:
        for argument in call.arguments:
            if isinstance(argument, MemoryDescriptor):
                self.program.descriptors.number(argument)
            elif isinstance(argument, Attributes):
                self.program.attributes.number(argument)
                for post_op in argument.post_ops:
                    if isinstance(post_op, Binary):
                        self.program.descriptors.number(post_op.other)

    def _argument(self, operand: Operand, number: int, found: _Found) -> MemoryRef:
        place = self._places.values[operand.value]
        if not operand.packed:
            return self._memory(operand)
        assert isinstance(place, Stored)
        weight = _weight(place.constant)
        self.program.weights[weight.digest] = weight
        descriptor = self.program.descriptors.number(operand.descriptor)
        packed = PackedMemory(weight, descriptor, number, operand.argument)
        return MemoryRef("packed", self._pack(packed, found.descriptor))

    def _memory(self, operand: Operand) -> MemoryRef:
        """A tensor as it is."""
        place = self._places.values[operand.value]
        if isinstance(place, Stored):
            return self._constant(_weight(place.constant), operand.descriptor)
        return self._context_memory(operand.descriptor, place)

    def _constant(self, weight: Weight, descriptor: MemoryDescriptor) -> MemoryRef:
        self.program.weights[weight.digest] = weight
        constant = ConstantMemory(weight, self.program.descriptors.number(descriptor))
        return MemoryRef("constant", self.program.constants.number(constant))

    def _pack(self, packed: PackedMemory, descriptor: PrimitiveDescriptor) -> int:
        """The packed memory; uses of one weight in one layout share it."""
        key = (packed.weight.digest, packed.stored, packed.argument)
        packers = self._packers.setdefault(key, {})
        for index, packer in packers.items():
            if descriptor.same(packed.argument, packer):
                return index
        self.program.packed.append(packed)
        index = len(self.program.packed) - 1
        packers[index] = descriptor
        return index

    def _context_memory(self, descriptor: MemoryDescriptor, place: Place) -> MemoryRef:
        number = self.program.descriptors.number(descriptor)
        memory = ContextMemory(number, place)
        return MemoryRef("context", self.program.memories.number(memory))


def _weight(op: ConstantOp) -> Weight:
    return op.weight


def _detail(found: _Found | OwnCode) -> OpDetail:
    implementation, measured = found.implementation, found.op.milliseconds
    milliseconds = None if measured is None else measured.value.data
    layout, is_slow = layout_of(found.op.results[0]), implementation.startswith("ref")
    note = f"{layout}, a reference implementation, slow" if is_slow else layout
    return OpDetail(node_names(found.op), implementation, milliseconds, note, is_slow)
