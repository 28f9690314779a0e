"""Emission of loops: the builder and the position that all loop strategies share."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, MemRefType, i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from byoc_mlir.dialects.dynamic_buffers import (
    LayoutAttr,
    SizeOp,
    View,
    ViewOp,
    buffer_sizes,
    dense_buffer,
)
from byoc_mlir.dims import Dim, Size, smallest
from byoc_mlir.lowering.linalg_to_loops.nest import Nest
from byoc_mlir.lowering.threads import decide_in_calls

INDEX = IndexType()

_NO_WRAP = {"overflowFlags": arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])}

Index = SSAValue | Size
"""Index that is known at compile time, in a call with known sizes, or at run time."""


@lru_cache(maxsize=4096)
def _index_attribute(value: int) -> IntegerAttr[IndexType]:
    return IntegerAttr(value, INDEX)


@lru_cache(maxsize=4096)
def _flat_type(element: Attribute, size: int) -> MemRefType:
    """Returns the type of a dense one-dimensional buffer."""
    return MemRefType(element, [size])


def _index_op(size: Size) -> Operation:
    if isinstance(size, Dim):
        return SizeOp(size)
    return arith.ConstantOp.create(
        result_types=[INDEX], properties={"value": _index_attribute(size)}
    )


def _flat_view(buffer: SSAValue, type_: MemRefType) -> View:
    """Returns the op that views a dense buffer as one-dimensional."""
    size = math.prod(buffer_sizes(type_))
    if isinstance(size, Dim) or isinstance(type_.layout, LayoutAttr):
        return ViewOp(buffer, dense_buffer(type_.element_type, (size,)))
    flat = _flat_type(type_.element_type, size)
    return memref.ReinterpretCastOp(buffer, [], [], [], [0], [size], [1], flat)


@dataclass
class WrittenLoop:
    """Loop that is being emitted: its counter and the values it carries."""

    counter: SSAValue
    carried: Sequence[SSAValue]
    results: Sequence[SSAValue] = ()
    yielded: Sequence[SSAValue] = ()

    def carry(self, values: Sequence[SSAValue]) -> None:
        """Sets the values for the next iteration."""
        self.yielded = values


class LoopWriter:
    """Builder that appends ops to a block; constants go to the start of the function."""

    def __init__(self, entry: Block, before: Operation):
        self._entry = entry
        self._before = before
        self._block: Block | None = None
        self._constants: dict[Size, SSAValue] = {}
        self._flat: dict[SSAValue, SSAValue] = {}
        self.location = before.location

    def emit(self, op: Operation) -> SSAValue:
        """Appends an op and returns its first result."""
        self.add(op)
        return op.results[0]

    def add(self, op: Operation) -> None:
        """Appends an op."""
        op.location = self.location
        if self._block is None:
            self._entry.insert_op_before(op, self._before)
        else:
            self._block.add_op(op)

    def _hoist(self, op: Operation) -> SSAValue:
        op.location = self.location
        first = self._entry.first_op
        assert first is not None
        self._entry.insert_op_before(op, first)
        return op.results[0]

    def index(self, value: Index) -> SSAValue:
        """Returns an index as an SSA value; constants are hoisted."""
        if isinstance(value, SSAValue):
            return value
        if value not in self._constants:
            self._constants[value] = self._hoist(_index_op(value))
        return self._constants[value]

    def add_index(self, lhs: Index, rhs: Index) -> Index:
        """Emits `lhs + rhs`."""
        if not isinstance(lhs, SSAValue) and not isinstance(rhs, SSAValue):
            return lhs + rhs
        if lhs == 0:
            return rhs
        if rhs == 0:
            return lhs
        return self._arithmetic(arith.AddiOp, self.index(lhs), self.index(rhs))

    def scale_index(self, value: Index, factor: Size) -> Index:
        """Emits `value * factor`."""
        if not isinstance(value, SSAValue):
            return value * factor
        if factor in (0, 1):
            return value if factor == 1 else 0
        return self._arithmetic(arith.MuliOp, value, self.index(factor))

    def product(self, lhs: Index, rhs: Index) -> Index:
        """Emits `lhs * rhs`."""
        if not isinstance(rhs, SSAValue):
            return self.scale_index(lhs, rhs)
        if not isinstance(lhs, SSAValue):
            return self.scale_index(rhs, lhs)
        return self.emit(arith.MuliOp(lhs, rhs))

    def _arithmetic(
        self, op: type[arith.AddiOp | arith.MuliOp], lhs: SSAValue, rhs: SSAValue
    ) -> SSAValue:
        """Emits a sum or product that does not overflow."""
        return self.emit(op.create(operands=[lhs, rhs], result_types=[INDEX], properties=_NO_WRAP))

    def flat(self, buffer: SSAValue) -> SSAValue:
        """Returns a one-dimensional view of a dense buffer."""
        type_ = buffer.type
        assert isinstance(type_, MemRefType)
        if len(type_.shape) == 1:
            return buffer
        if buffer not in self._flat:
            self._flat[buffer] = self._hoist(_flat_view(buffer, type_))
        return self._flat[buffer]

    def minimum(self, lhs: Index, rhs: Index) -> Index:
        """Emits the minimum of two indices."""
        if not isinstance(lhs, SSAValue) and not isinstance(rhs, SSAValue):
            return smallest(lhs, rhs)
        return self.emit(arith.MinSIOp(self.index(lhs), self.index(rhs)))

    def quotient(self, value: Index, divisor: int) -> Index:
        """Emits `value / divisor`, for a non-negative value."""
        if not isinstance(value, SSAValue):
            return value // divisor
        return self.emit(arith.DivUIOp(value, self.index(divisor)))

    def remainder(self, value: Index, divisor: int) -> Index:
        """Emits `value % divisor`, for a non-negative value."""
        if not isinstance(value, SSAValue):
            return value % divisor
        return self.emit(arith.RemUIOp(value, self.index(divisor)))

    def bits(self, value: SSAValue, mask: int) -> SSAValue:
        """Emits `value & mask`."""
        return self.emit(arith.AndIOp(value, self.index(mask)))

    def is_zero(self, value: SSAValue) -> SSAValue:
        """Emits the comparison of an index with zero."""
        return self.emit(arith.CmpiOp(value, self.index(0), "eq"))

    def boolean(self, value: bool) -> SSAValue:
        """Emits a boolean constant."""
        return self.emit(arith.ConstantOp.from_int_and_width(int(value), i1))

    @contextmanager
    def unrolled(
        self, size: Index, *, start: Index = 0, step: int = 1, most: int
    ) -> Generator[Sequence[Index]]:
        """Yields the counters for which the caller must emit the body.

        They are all numbers, if there are at most `most` and they are known; else the counter of a
        loop.
        """
        if isinstance(size, int) and isinstance(start, int):
            counters = range(start, size, step)
            if len(counters) <= most:
                yield counters
                return
        with self.loop(size, start=start, step=step) as loop:
            yield [loop.counter]

    def unknown_size(self, buffer: SSAValue) -> SSAValue:
        """Returns a one-dimensional view of a dense buffer, with a dynamic size in its type."""
        flat = self.flat(buffer)
        assert isinstance(flat.type, MemRefType)
        type_ = _flat_type(flat.type.element_type, DYNAMIC_INDEX)
        return self.emit(memref.CastOp.get(flat, type_))

    @contextmanager
    def if_positive(self, value: Index) -> Generator[None]:
        """Emits the ops of the `with` body, to run only if `value` is greater than zero."""
        if isinstance(value, int):
            assert value > 0
            yield
            return
        with self.only_if(self.emit(arith.CmpiOp(self.index(value), self.index(0), "sgt"))):
            yield

    @contextmanager
    def only_if(self, condition: SSAValue) -> Generator[None]:
        """Emits the ops of the `with` body, to run only if `condition` holds."""
        block = Block()
        outer, self._block = self._block, block
        yield
        self.add(scf.YieldOp())
        self._block = outer
        self.add(scf.IfOp(condition, [], Region(block)))

    def load(self, buffer: SSAValue, index: Index) -> SSAValue:
        """Emits the load of a buffer's element at a linear index."""
        return self.emit(memref.LoadOp.get(self.flat(buffer), [self.index(index)]))

    def store(self, value: SSAValue, buffer: SSAValue, index: Index) -> None:
        """Emits the store to a buffer's element at a linear index."""
        self.add(memref.StoreOp.get(value, self.flat(buffer), [self.index(index)]))

    @contextmanager
    def loop(
        self, size: Index, init: Sequence[SSAValue] = (), *, start: Index = 0, step: int = 1
    ) -> Generator[WrittenLoop]:
        """Emits a loop from `start` to `size`; with `init`, the body must call `carry`."""
        block = Block(arg_types=[INDEX, *(value.type for value in init)])
        loop = WrittenLoop(block.args[0], block.args[1:])
        bounds = self.index(start), self.index(size), self.index(step)
        outer, self._block = self._block, block
        yield loop
        self.add(scf.YieldOp(*loop.yielded))
        self._block = outer
        op = scf.ForOp(*bounds, list(init), Region(block))
        self.add(op)
        loop.results = op.results

    @contextmanager
    def parallel(
        self, sizes: Sequence[Size], steps: Sequence[int] = (), *, cycles: float
    ) -> Generator[Sequence[SSAValue]]:
        """Emits a parallel loop nest, and yields its counters.

        Args:
            sizes: upper bounds of the loops.
            steps: steps of the loops; 1 by default.
            cycles: estimated cycles of the whole nest, for the hints of symbolic sizes.
        """
        steps = steps or [1] * len(sizes)
        block = Block(arg_types=[INDEX] * len(sizes))
        lower = [self.index(0)] * len(sizes)
        upper = [self.index(size) for size in sizes]
        step = [self.index(s) for s in steps]
        outer, self._block = self._block, block
        yield block.args
        self.add(scf.ReduceOp())
        self._block = outer
        op = scf.ParallelOp(lower, upper, step, Region(block))
        counts = [-(-size // step) for size, step in zip(sizes, steps, strict=True)]
        decide_in_calls(op, counts, cycles)
        self.add(op)

    def inline(
        self, body: Block, args: Sequence[SSAValue], positions: Sequence[Index] = ()
    ) -> list[SSAValue]:
        """Emits the body of a `linalg.generic`, and returns the yielded values."""
        values: dict[SSAValue, SSAValue] = dict(zip(body.args, args, strict=True))
        for op in body.ops:
            if isinstance(op, linalg.YieldOp):
                return [values.get(value, value) for value in op.arguments]
            if isinstance(op, linalg.IndexOp):
                values[op.result] = self.index(positions[op.dim.value.data])
                continue
            self.add(op.clone(values))
        raise AssertionError("the body of a linalg.generic ends in linalg.yield")


@dataclass(frozen=True)
class Position:
    """Position inside a nest: the counters of the entered loops, and the resulting index of each
    access.
    """

    counters: tuple[Index, ...]
    indices: tuple[Index, ...]
    followed: frozenset[int]
    """Accesses whose index is kept up to date."""

    @staticmethod
    def start(nest: Nest) -> Position:
        """Returns the position before all loops."""
        indices = tuple(access.offset for access in nest.accesses)
        return Position((0,) * len(nest.sizes), indices, frozenset(range(len(indices))))

    def following(self, accesses: Iterable[int]) -> Position:
        """Returns the same position, which updates only the indices of these accesses from now
        on.
        """
        return replace(self, followed=frozenset(accesses))

    def entered(self, code: LoopWriter, nest: Nest, loop: int, counter: Index) -> Position:
        """Returns the position in an iteration of loop `loop`, whose counter is `counter`."""
        counters = (*self.counters[:loop], counter, *self.counters[loop + 1 :])
        shifts: dict[Size, Index] = {}
        indices = list(self.indices)
        for number in sorted(self.followed):
            factor = nest.accesses[number].coefficients[loop]
            if factor not in shifts:
                shifts[factor] = code.scale_index(counter, factor)
            indices[number] = code.add_index(indices[number], shifts[factor])
        return Position(counters, tuple(indices), self.followed)


Emit = Callable[[Position], None]
