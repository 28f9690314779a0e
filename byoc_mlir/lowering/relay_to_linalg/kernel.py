"""Writing the body of a `host.kernel`: loops, conditions and scalars with Python's operators."""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.dialects.relay.base import Tensor, relay_name, tensor_type
from byoc_mlir.lowering.linalg_to_loops.simple import PARALLEL_WORK
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder
from byoc_mlir.lowering.relay_to_linalg.scalars import (
    Kind,
    Scalars,
    floor_remainder,
    signless,
)

INDEX = IndexType()

Index: TypeAlias = "Num | int"
Number: TypeAlias = "Num | float"


class Num:
    """A scalar of a kernel; operators write the ops that compute with it.

    `/` and `%` are those of C. Comparisons give an i1, on which `&`, `|` and `~` work.
    """

    def __init__(self, kernel: Kernel, value: SSAValue, element_type: Attribute):
        self._kernel = kernel
        self.value = value
        self.type = element_type

    def _binary(self, name: str, other: Number, *, swapped: bool = False) -> Num:
        rhs = self._kernel.like(other, self)
        lhs, rhs = (rhs, self) if swapped else (self, rhs)
        return self._made(self._scalars.binary(name, lhs.value, rhs.value))

    def _compare(self, predicate: str, other: Number) -> Num:
        rhs = self._kernel.like(other, self)
        return Num(self._kernel, self._scalars.compare(predicate, self.value, rhs.value), i1)

    def _bits(self, op: type[Operation], other: Number) -> Num:
        operands = [self.value, self._kernel.like(other, self).value]
        made = op.create(operands=operands, result_types=[self.value.type])
        return self._made(self._kernel.emit(made))

    @property
    def _scalars(self) -> Scalars:
        return self._kernel.scalars(Kind.of(self.type))

    def _made(self, value: SSAValue) -> Num:
        return Num(self._kernel, value, self.type)

    def __add__(self, other: Number) -> Num:
        return self if other == 0 else self._binary("add", other)

    def __radd__(self, other: float) -> Num:
        return self + other

    def __sub__(self, other: Number) -> Num:
        return self if other == 0 else self._binary("sub", other)

    def __rsub__(self, other: float) -> Num:
        return self._binary("sub", other, swapped=True)

    def __mul__(self, other: Number) -> Num:
        return self if other == 1 else self._binary("mul", other)

    def __rmul__(self, other: float) -> Num:
        return self * other

    def __truediv__(self, other: Number) -> Num:
        return self if other == 1 else self._binary("div", other)

    def __rtruediv__(self, other: float) -> Num:
        return self._binary("div", other, swapped=True)

    def __mod__(self, other: Number) -> Num:
        return self._binary("rem", other)

    def __lt__(self, other: Number) -> Num:
        return self._compare("lt", other)

    def __le__(self, other: Number) -> Num:
        return self._compare("le", other)

    def __gt__(self, other: Number) -> Num:
        return self._compare("gt", other)

    def __ge__(self, other: Number) -> Num:
        return self._compare("ge", other)

    def __and__(self, other: Num) -> Num:
        return self._bits(arith.AndIOp, other)

    def __or__(self, other: Num) -> Num:
        return self._bits(arith.OrIOp, other)

    def __invert__(self) -> Num:
        return self._bits(arith.XOrIOp, -1 if self.type != i1 else 1)

    def __neg__(self) -> Num:
        return 0 - self

    def equals(self, other: Number) -> Num:
        """Whether it is `other`, as i1."""
        return self._compare("eq", other)

    def floor_remainder(self, other: Number) -> Num:
        """The remainder with the sign of the divisor."""
        rhs = self._kernel.like(other, self)
        return self._made(floor_remainder(self._scalars, self.value, rhs.value))

    def max(self, other: Number) -> Num:
        """The larger."""
        return self._binary("max", other)

    def min(self, other: Number) -> Num:
        """The smaller."""
        return self._binary("min", other)

    def within(self, low: Number, high: Number) -> Num:
        """The nearest number in [low, high]."""
        return self.max(low).min(high)

    def unary(self, op: type[Operation]) -> Num:
        """An op of the `math` dialect."""
        return self._made(self._scalars.unary(op, self.value))

    def is_nan(self) -> Num:
        """Whether it is NaN; never for integers."""
        if Kind.of(self.type) is not Kind.FLOAT:
            return self._kernel.like(0, Num(self._kernel, self.value, i1))
        return Num(self._kernel, self._kernel.emit(arith.CmpfOp(self.value, self.value, "uno")), i1)

    def to(self, type_: Attribute) -> Num:
        """It converted to another element type, or to `INDEX`."""
        kernel = self._kernel
        if type_ == self.type:
            return self
        if self.type == INDEX:
            wide = Num(kernel, kernel.emit(arith.IndexCastOp(self.value, i64)), i64)
            return wide.to(type_)
        if type_ == INDEX:
            wide = self if self.type == i64 else self.to(i64)
            return Num(kernel, kernel.emit(arith.IndexCastOp(wide.value, INDEX)), INDEX)
        return Num(kernel, self._scalars.cast(self.value, self.type, type_), type_)


class Buffer:
    """A dense memref in a kernel, read and written with `buffer[i, j]`."""

    def __init__(self, kernel: Kernel, memref_: SSAValue):
        assert isinstance(memref_.type, MemRefType)
        self._kernel = kernel
        self.memref = memref_
        self.type: Attribute = memref_.type.element_type
        self.shape: tuple[int, ...] = memref_.type.get_shape()

    @property
    def size(self) -> int:
        """The number of elements."""
        return pymath.prod(self.shape)

    def __getitem__(self, position: Index | Sequence[Index]) -> Num:
        kernel = self._kernel
        load = memref.LoadOp.get(self.memref, kernel.positions(position))
        value = kernel.scalars(Kind.of(self.type)).unwrap(kernel.emit(load))
        return Num(kernel, value, self.type)

    def __setitem__(self, position: Index | Sequence[Index], number: Number) -> None:
        kernel = self._kernel
        value = kernel.as_type(number, self.type).value
        wrapped = kernel.scalars(Kind.of(self.type)).wrap(value, self.type)
        kernel.add(memref.StoreOp.get(wrapped, self.memref, kernel.positions(position)))

    def reshaped(self, *shape: int) -> Buffer:
        """The same elements, row-major, in another shape."""
        if shape == self.shape:
            return self
        type_ = MemRefType(self.type, shape)
        strides = [pymath.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        cast_ = memref.ReinterpretCastOp(self.memref, [], [], [], [0], shape, strides, type_)
        return Buffer(self._kernel, self._kernel.hoist(cast_))

    def copy_from(self, other: Buffer) -> None:
        """Copies all elements of a buffer of the same type."""
        self._kernel.add(memref.CopyOp(other.memref, self.memref))


class Variable:
    """A scalar that changes: a place on the stack, which LLVM turns into a register."""

    def __init__(self, place: Buffer):
        self._place = place

    @property
    def value(self) -> Num:
        """What it holds here."""
        return self._place[0]

    @value.setter
    def value(self, number: Number) -> None:
        self._place[0] = number


class Kernel:
    """A `host.kernel` under construction: `inputs` and `outputs` are its buffers."""

    def __init__(
        self,
        op: Operation,
        inputs: Sequence[SSAValue] | None = None,
        outputs: Sequence[Tensor] | None = None,
        scratch: Sequence[Tensor] = (),
    ):
        self._op = op
        self._arguments = list(op.operands) if inputs is None else list(inputs)
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
        """Adds the op; its results."""
        self.add(host.YieldOp())
        name = relay_name(self._op).rpartition(".")[2]
        op = host.KernelOp(name, self._arguments, self._types, Region(self._entry))
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
        """Puts an op at the start of the kernel."""
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
        """A writer of scalar ops at this place."""
        return Scalars(self._block, kind)

    def constant(self, value: float, type_: Attribute) -> Num:
        """A constant of an element type, or an index."""
        key = (repr(value), type_)
        if key not in self._constants:
            self._constants[key] = self.hoist(_constant(value, signless(type_)))
        return Num(self, self._constants[key], type_)

    def index(self, value: Index) -> Num:
        """A position as a number."""
        return value if isinstance(value, Num) else self.constant(value, INDEX)

    def like(self, number: Number, other: Num) -> Num:
        """A Python number as one of the type of `other`; numbers of a kernel stay."""
        return number if isinstance(number, Num) else self.constant(number, other.type)

    def as_type(self, number: Number, type_: Attribute) -> Num:
        """A number converted to a type."""
        return number.to(type_) if isinstance(number, Num) else self.constant(number, type_)

    def positions(self, position: Index | Sequence[Index]) -> list[SSAValue]:
        """Indices of a memref."""
        sequence = position if isinstance(position, Sequence) else (position,)
        return [self.index(item).value for item in sequence]

    def position(self, index: Num, size: int) -> Num:
        """An index, negative ones counted from the end, as a position; clamped."""
        position = index.to(INDEX)
        return self.select(position < 0, position + size, position).within(0, size - 1)

    def select(self, condition: Num, yes: Number, no: Number) -> Num:
        """`yes` where `condition` holds, else `no`; one of them a number of the kernel."""
        like = yes if isinstance(yes, Num) else no
        assert isinstance(like, Num)
        values = [self.like(yes, like).value, self.like(no, like).value]
        return Num(self, self.emit(arith.SelectOp(condition.value, *values)), like.type)

    def variable(self, start: Num) -> Variable:
        """A variable that holds `start` first."""
        variable = Variable(self.stack(1, start.type))
        variable.value = start
        return variable

    def stack(self, size: int, type_: Attribute) -> Buffer:
        """A small buffer on the stack."""
        return Buffer(self, self.emit(memref.AllocaOp.get(type_, None, [size])))

    @contextmanager
    def _inside(self, block: Block) -> Generator[None]:
        outer, self._block = self._block, block
        yield
        self._block = outer

    @contextmanager
    def loop(self, end: Index, start: Index = 0, step: Index = 1) -> Generator[Num]:
        """`for counter in range(start, end, step)`; the step is positive."""
        block = Block(arg_types=[INDEX])
        first, last, stride = (self.index(value).value for value in (start, end, step))
        with self._inside(block):
            yield Num(self, block.args[0], INDEX)
            self.add(scf.YieldOp())
        self.add(scf.ForOp(first, last, stride, [], Region(block)))

    @contextmanager
    def loops(self, shape: Sequence[int], cost: float = 1) -> Generator[tuple[Index, ...]]:
        """Independent iterations over `shape`, on all threads if there is enough to do.

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
        if pymath.prod(sizes) * cost >= PARALLEL_WORK:
            with self._inside(block):
                yield tuple(counters)
                self.add(scf.ReduceOp())
            lower, upper, step = ([self.index(n).value for n in ns] for ns in _ranges(sizes))
            self.add(scf.ParallelOp(lower, upper, step, Region(block)))
            return
        yield from self._nested(shape, ())

    @contextmanager
    def sequential(self, shape: Sequence[int]) -> Generator[tuple[Index, ...]]:
        """Iterations over `shape`, one after the other."""
        yield from self._nested(shape, ())

    def _nested(
        self, shape: Sequence[int], counters: tuple[Index, ...]
    ) -> Generator[tuple[Index, ...]]:
        if len(counters) == len(shape):
            yield counters
        elif shape[len(counters)] == 1:
            yield from self._nested(shape, (*counters, 0))
        else:
            with self.loop(shape[len(counters)]) as counter:
                yield from self._nested(shape, (*counters, counter))

    @contextmanager
    def when(self, condition: Num) -> Generator[None]:
        """What is written inside happens where `condition` holds."""
        block = Block()
        with self._inside(block):
            yield
            self.add(scf.YieldOp())
        self.add(scf.IfOp(condition.value, [], Region(block)))

    @contextmanager
    def repeat_while(self, condition: Callable[[], Num]) -> Generator[None]:
        """What is written inside happens as long as `condition()` holds before."""
        before, after = Block(), Block()
        with self._inside(before):
            holds = condition()
            self.add(scf.ConditionOp(holds.value))
        with self._inside(after):
            yield
            self.add(scf.YieldOp())
        self.add(scf.WhileOp([], [], Region(before), Region(after)))


def _ranges(sizes: Sequence[int]) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Starts, ends and steps."""
    return [0] * len(sizes), sizes, [1] * len(sizes)


def _constant(value: float, type_: Attribute) -> Operation:
    if isinstance(type_, IndexType):
        return arith.ConstantOp(IntegerAttr(int(value), type_), type_)
    block = Block()
    Scalars(block, Kind.of(type_)).constant(value, type_)
    op = block.first_op
    assert op is not None
    op.detach()
    return op
