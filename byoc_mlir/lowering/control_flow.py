"""Control flow on buffers: `scf` around the calls of branches and bodies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    IndexType,
    IntegerType,
    MemRefType,
    StridedLayoutAttr,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.relay.base import Tensor
from byoc_mlir.dialects.relay.control import ControlOp, ForOp, IfOp, LoopOp, WhileOp

_INDEX = IndexType()

Allocate = Callable[[Tensor], SSAValue]
"""A new buffer for a tensor."""


def lower_control(
    op: ControlOp,
    operands: Sequence[SSAValue],
    results: Sequence[SSAValue],
    allocate: Allocate,
) -> list[Operation]:
    """The ops that do the work of an op on buffers; they are in no block yet.

    Args:
        operands: the buffers of its operands.
        results: the buffers of its results, with memory of their own.
        allocate: adds the op for a new buffer.
    """
    block = Block()
    builder = Builder(InsertPoint.at_end(block))
    match op:
        case IfOp():
            _lower_if(op, operands, results, builder)
        case ForOp():
            _ForLowering(op, operands, results, allocate, builder).run()
        case WhileOp():
            _WhileLowering(op, operands, results, allocate, builder).run()
        case _:
            raise PassFailedException(f"{op.name} at {op.location} cannot be bufferized")
    ops = list(block.ops)
    for made in ops:
        made.detach()
        for inner in made.walk():
            inner.location = op.location
    return ops


def _lower_if(
    op: IfOp, operands: Sequence[SSAValue], results: Sequence[SSAValue], builder: Builder
) -> None:
    condition, *arguments = operands
    chosen = builder.insert(memref.LoadOp.get(condition, []))
    then_branch, else_branch = (
        [func.CallOp(symbol, [*arguments, *results], []), scf.YieldOp()] for symbol in op.symbols()
    )
    builder.insert(scf.IfOp(chosen, [], then_branch, else_branch))


class _LoopLowering:
    """What the loops share. A state is in the buffer of the op's result, from the first iteration
    on; the body writes the next one beside it, from where it is copied.
    """

    def __init__(
        self,
        op: LoopOp,
        operands: Sequence[SSAValue],
        results: Sequence[SSAValue],
        allocate: Allocate,
        builder: Builder,
    ):
        carried = len(op.initial)
        leading = len(operands) - len(op.loop_values)
        self._builder = builder
        self._leading = operands[:leading]
        self._initial = operands[leading:][:carried]
        self._invariant = operands[leading:][carried:]
        self._states, self._stacked = results[:carried], results[carried:]
        self._body = op.body
        self._number = allocate(TensorType(i64, []))
        self._next = [allocate(_tensor(state)) for state in self._states]

    def _begin(self) -> None:
        """Puts the initial values where the states are."""
        for initial, state in zip(self._initial, self._states, strict=True):
            self._builder.insert(memref.CopyOp(initial, state))

    def _iterate(self, inner: Builder, number: SSAValue, outputs: Sequence[SSAValue]) -> None:
        """One iteration; `outputs` are what the body writes beside the states."""
        inner.insert(memref.StoreOp.get(number, self._number, []))
        arguments = [self._number, *self._states, *self._invariant]
        inner.insert(func.CallOp(self._body, [*arguments, *outputs], []))

    def _advance(self, inner: Builder) -> None:
        for state, following in zip(self._states, self._next, strict=True):
            inner.insert(memref.CopyOp(following, state))


class _ForLowering(_LoopLowering):
    def __init__(
        self,
        op: ForOp,
        operands: Sequence[SSAValue],
        results: Sequence[SSAValue],
        allocate: Allocate,
        builder: Builder,
    ):
        super().__init__(op, operands, results, allocate, builder)
        self._count = op.count.value.data
        self._rows = [allocate(_row_type(stacked)) for stacked in self._stacked]

    def run(self) -> None:
        """Writes the loop."""
        self._begin()
        begin, end, step = (_constant(self._builder, n, _INDEX) for n in (0, self._count, 1))
        block = Block(arg_types=[_INDEX])
        inner = Builder(InsertPoint.at_end(block))
        iteration = block.args[0]
        number = inner.insert(arith.IndexCastOp(iteration, i64)).result
        self._iterate(inner, number, [*self._next, *self._rows])
        self._advance(inner)
        for row, stacked in zip(self._rows, self._stacked, strict=True):
            inner.insert(memref.CopyOp(row, inner.insert(_row(stacked, iteration)).result))
        inner.insert(scf.YieldOp())
        self._builder.insert(scf.ForOp(begin, end, step, [], Region(block)))


class _WhileLowering(_LoopLowering):
    def __init__(
        self,
        op: WhileOp,
        operands: Sequence[SSAValue],
        results: Sequence[SSAValue],
        allocate: Allocate,
        builder: Builder,
    ):
        super().__init__(op, operands, results, allocate, builder)
        self._going = allocate(TensorType(i1, []))

    def run(self) -> None:
        """Writes the loop."""
        self._begin()
        limit, condition = self._leading
        self._builder.insert(memref.CopyOp(condition, self._going))
        bound = self._builder.insert(memref.LoadOp.get(limit, [])).res
        before, after = Block(arg_types=[i64]), Block(arg_types=[i64])
        self._decide(Builder(InsertPoint.at_end(before)), before.args[0], bound)
        inner, number = Builder(InsertPoint.at_end(after)), after.args[0]
        self._iterate(inner, number, [self._going, *self._next])
        self._advance(inner)
        following = inner.insert(arith.AddiOp(number, _constant(inner, 1, i64)))
        inner.insert(scf.YieldOp(following))
        start = _constant(self._builder, 0, i64)
        self._builder.insert(scf.WhileOp([start], [i64], Region(before), Region(after)))

    def _decide(self, inner: Builder, number: SSAValue, bound: SSAValue) -> None:
        going = inner.insert(memref.LoadOp.get(self._going, [])).res
        below = inner.insert(arith.CmpiOp(number, bound, "slt")).result
        inner.insert(scf.ConditionOp(inner.insert(arith.AndIOp(going, below)).result, number))


def _tensor(buffer: SSAValue) -> Tensor:
    """The tensor that a buffer holds."""
    assert isinstance(buffer.type, MemRefType)
    return TensorType(buffer.type.element_type, buffer.type.get_shape())


def _row_type(stacked: SSAValue) -> Tensor:
    type_ = _tensor(stacked)
    return TensorType(type_.element_type, type_.get_shape()[1:])


def _row(stacked: SSAValue, iteration: SSAValue) -> memref.SubviewOp:
    """The view of one row, without the dimension of the rows."""
    assert isinstance(stacked.type, MemRefType)
    row = _row_type(stacked)
    shape = row.get_shape()
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    type_ = MemRefType(row.element_type, shape, StridedLayoutAttr(strides, None))
    offsets, ones = [iteration, *[0] * len(shape)], [1] * (len(shape) + 1)
    return memref.SubviewOp.get(stacked, offsets, [1, *shape], ones, type_)


def _constant(builder: Builder, value: int, type_: IndexType | IntegerType) -> SSAValue:
    return builder.insert(arith.ConstantOp.from_int_and_width(value, type_)).result


def called_symbols(op: Operation) -> list[tuple[func.CallOp, str]]:
    """The calls in an op, itself or in its regions, and what they call."""
    return [
        (inner, inner.callee.root_reference.data)
        for inner in op.walk()
        if isinstance(inner, func.CallOp)
    ]
