"""Builder of a `host.kernel`'s body: loops, conditions and scalars with Python's operators."""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.dialects.dynamic_buffers import SizeOp
from byoc_mlir.dialects.relay.base import Tensor, relay_name, tensor_type
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Dim, Size
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder
from byoc_mlir.lowering.relay_to_linalg.computed_types import Kind, signless
from byoc_mlir.lowering.relay_to_linalg.kernel_values import (
    INDEX,
    Buffer,
    Index,
    Num,
    Number,
    Variable,
)
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars, constant_op
from byoc_mlir.lowering.threads import INDEPENDENT, decide_in_calls, is_worth_threads

__all__ = ["INDEX", "Buffer", "Index", "Kernel", "Num", "Number", "Variable"]


class Kernel:
    """Builder of a `host.kernel`; `inputs` and `outputs` are the kernel's buffers."""

    def __init__(
        self,
        op: Operation,
        inputs: Sequence[SSAValue] | None = None,
        outputs: Sequence[Tensor] | None = None,
        scratch: Sequence[Tensor] = (),
        initial: SSAValue | None = None,
        *,
        prefer_no_gather: bool = False,
    ):
        """Creates a kernel with buffers for operands, results and scratch memory.

        Args:
            initial: initial value of the first output; it is not among `inputs`.
            prefer_no_gather: True to tell LLVM not to use gathers, because single loads are faster.
        """
        self._op = op
        self._initial = initial
        self._prefers_no_gather = prefer_no_gather
        operands = (value for value in op.operands if value is not initial)
        self._arguments = list(operands if inputs is None else inputs)
        types = [tensor_type(result) for result in op.results] if outputs is None else outputs
        self._wanted = len(types)
        self._types = [*types, *scratch]
        all_types = [*(value.type for value in self._arguments), *self._types]
        self._entry = Block(arg_types=[host.buffer_type(type_) for type_ in all_types])
        self._block = self._entry
        self._last_hoisted: Operation | None = None
        self._constants: dict[tuple[str, Attribute], SSAValue] = {}
        buffers = [Buffer(self, arg) for arg in self._entry.args]
        count, wanted = len(self._arguments), len(types)
        self.inputs = buffers[:count]
        self.outputs = buffers[count : count + wanted]
        self.scratch = buffers[count + wanted :]

    def finish(self, b: LinalgBuilder) -> Sequence[SSAValue]:
        """Inserts the op, and returns its results."""
        self.add(host.YieldOp())
        name = relay_name(self._op).rpartition(".")[2]
        initial = [] if self._initial is None else [self._initial]
        arguments, body = [*initial, *self._arguments], Region(self._entry)
        op = host.KernelOp(
            name,
            arguments,
            self._types,
            body,
            in_place=bool(initial),
            prefer_no_gather=self._prefers_no_gather,
        )
        b.emit(op)
        return op.results[: self._wanted]

    def add(self, op: Operation) -> None:
        """Appends an op."""
        op.location = self._op.location
        self._block.add_op(op)

    def emit(self, op: Operation) -> SSAValue:
        """Appends an op and returns its result."""
        self.add(op)
        return op.results[0]

    def hoist(self, op: Operation) -> SSAValue:
        """Inserts an op at the start of the kernel."""
        op.location = self._op.location
        first = self._entry.first_op
        if self._last_hoisted is not None:
            self._entry.insert_op_after(op, self._last_hoisted)
        elif first is not None:
            self._entry.insert_op_before(op, first)
        else:
            self._entry.add_op(op)
        self._last_hoisted = op
        return op.results[0]

    def scalars(self, kind: Kind) -> Scalars:
        """Returns a builder of scalar ops at the current position."""
        return Scalars(self._block, kind)

    def constant(self, value: float | Dim, type_: Attribute) -> Num:
        """Returns a constant of an element type, or an index; a symbolic size is allowed."""
        if isinstance(value, Dim) and type_ != INDEX:
            return self.constant(value, INDEX).to(type_)
        key = (repr(value), type_)
        if key not in self._constants:
            made = SizeOp(value) if isinstance(value, Dim) else _constant(value, signless(type_))
            self._constants[key] = self.hoist(made)
        return Num(self, self._constants[key], type_)

    def index(self, value: Index) -> Num:
        """Returns a position as a number."""
        return value if isinstance(value, Num) else self.constant(value, INDEX)

    def like(self, number: Number, other: Num) -> Num:
        """Converts a Python number to the type of `other`; returns a `Num` unchanged."""
        return number if isinstance(number, Num) else self.constant(number, other.type)

    def as_type(self, number: Number, type_: Attribute) -> Num:
        """Converts a number to a type."""
        return number.to(type_) if isinstance(number, Num) else self.constant(number, type_)

    def positions(self, position: Index | Sequence[Index]) -> list[SSAValue]:
        """Returns a position as the indices of a memref."""
        sequence = position if isinstance(position, Sequence) else (position,)
        return [self.index(item).value for item in sequence]

    def position(self, index: Num, size: Size) -> Num:
        """Converts an index to a clamped position; negative indices count from the end."""
        position = index.to(INDEX)
        return self.select(position < 0, position + size, position).within(0, size - 1)

    def select(self, condition: Num, yes: Number, no: Number) -> Num:
        """Emits `yes` if `condition` holds, else `no`; at least one of them is a `Num`."""
        like = yes if isinstance(yes, Num) else no
        assert isinstance(like, Num)
        values = [self.like(yes, like).value, self.like(no, like).value]
        return Num(self, self.emit(arith.SelectOp(condition.value, *values)), like.type)

    def variable(self, start: Num) -> Variable:
        """Creates a variable with the initial value `start`."""
        variable = Variable(self.stack(1, start.type))
        variable.value = start
        return variable

    def stack(self, size: int, type_: Attribute) -> Buffer:
        """Allocates a small buffer on the stack."""
        return Buffer(self, self.emit(memref.AllocaOp.get(type_, None, [size])))

    @contextmanager
    def _inside(self, block: Block) -> Generator[None]:
        outer, self._block = self._block, block
        yield
        self._block = outer

    @contextmanager
    def loop(
        self,
        end: Index,
        start: Index = 0,
        step: Index = 1,
        *,
        attributes: Mapping[str, Attribute] = MappingProxyType({}),
    ) -> Generator[Num]:
        """Emits `for counter in range(start, end, step)`; the step is positive."""
        block = Block(arg_types=[INDEX])
        first, last, stride = (self.index(value).value for value in (start, end, step))
        with self._inside(block):
            yield Num(self, block.args[0], INDEX)
            self.add(scf.YieldOp())
        op = scf.ForOp(first, last, stride, [], Region(block))
        op.attributes |= attributes
        self.add(op)

    def fold(
        self,
        end: Index,
        start: Sequence[SSAValue],
        body: Callable[[Num, Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """Emits a loop from 0 to `end` that carries values; returns the final values.

        The body gets the counter and the carried values, and returns the next values.
        """
        block = Block(arg_types=[INDEX, *(value.type for value in start)])
        first, last, stride = (self.index(value).value for value in (0, end, 1))
        with self._inside(block):
            values = body(Num(self, block.args[0], INDEX), block.args[1:])
            self.add(scf.YieldOp(*values))
        op = scf.ForOp(first, last, stride, list(start), Region(block))
        self.add(op)
        return op.results

    @contextmanager
    def loops(self, shape: Sequence[Size], cost: Size | float = 1) -> Generator[tuple[Index, ...]]:
        """Emits independent iterations over `shape`, on all threads if there is enough work.

        `cost` is the rough number of cycles of one iteration.
        """
        looped = [axis for axis, size in enumerate(shape) if size != 1]
        counters: list[Index] = [0] * len(shape)
        block = Block(arg_types=[INDEX] * len(looped))
        for axis, argument in zip(looped, block.args, strict=True):
            counters[axis] = Num(self, argument, INDEX)
        if not looped:
            yield tuple(counters)
            return
        sizes = [shape[axis] for axis in looped]
        work = cost if isinstance(cost, float) else hint(cost)
        cycles = hint(pymath.prod(sizes)) * work
        if is_worth_threads(sizes, cycles):
            with self._inside(block):
                yield tuple(counters)
                self.add(scf.ReduceOp())
            ranges = ([0] * len(sizes), sizes, [1] * len(sizes))
            lower, upper, step = ([self.index(n).value for n in numbers] for numbers in ranges)
            op = scf.ParallelOp(lower, upper, step, Region(block))
            decide_in_calls(op, sizes, cycles)
            self.add(op)
            return
        yield from self._nested(shape, (), {INDEPENDENT: UnitAttr()})

    @contextmanager
    def sequential(self, shape: Sequence[Size]) -> Generator[tuple[Index, ...]]:
        """Emits sequential iterations over `shape`."""
        yield from self._nested(shape, (), {})

    def _nested(
        self,
        shape: Sequence[Size],
        counters: tuple[Index, ...],
        attributes: Mapping[str, Attribute],
    ) -> Generator[tuple[Index, ...]]:
        if len(counters) == len(shape):
            yield counters
        elif shape[len(counters)] == 1:
            yield from self._nested(shape, (*counters, 0), attributes)
        else:
            with self.loop(shape[len(counters)], attributes=attributes) as counter:
                yield from self._nested(shape, (*counters, counter), attributes)

    @contextmanager
    def when(self, condition: Num) -> Generator[None]:
        """Emits the ops of the `with` body, to run only if `condition` holds."""
        block = Block()
        with self._inside(block):
            yield
            self.add(scf.YieldOp())
        self.add(scf.IfOp(condition.value, [], Region(block)))

    @contextmanager
    def repeat_while(self, condition: Callable[[], Num]) -> Generator[None]:
        """Emits a loop over the ops of the `with` body while `condition()` holds."""
        before, after = Block(), Block()
        with self._inside(before):
            holds = condition()
            self.add(scf.ConditionOp(holds.value))
        with self._inside(after):
            yield
            self.add(scf.YieldOp())
        self.add(scf.WhileOp([], [], Region(before), Region(after)))


def _constant(value: float, type_: Attribute) -> Operation:
    if isinstance(type_, IndexType):
        return constant_op(IntegerAttr(int(value), type_))
    block = Block()
    Scalars(block, Kind.of(type_)).constant(value, type_)
    op = block.first_op
    assert op is not None
    op.detach()
    return op
