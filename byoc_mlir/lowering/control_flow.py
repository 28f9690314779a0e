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
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.dynamic_buffers import SizeOp, ViewOp, buffer_sizes, dense_buffer
from byoc_mlir.dialects.relay.base import Tensor, one_size, tensor_of, type_sizes
from byoc_mlir.dialects.relay.control import (
    BindOp,
    CallOp,
    ControlOp,
    ForOp,
    IfOp,
    LoopOp,
    WhileOp,
)
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.dims import Dim, Size

_INDEX = IndexType()

Allocate = Callable[[Tensor], SSAValue]
"""Function that allocates a buffer for a tensor."""


def lower_control(
    op: ControlOp,
    operands: Sequence[SSAValue],
    results: Sequence[SSAValue],
    allocate: Allocate,
) -> list[Operation]:
    """Returns the ops that implement a control flow op on buffers; they are not inserted yet.

    Args:
        operands: buffers of the op's operands.
        results: buffers of the op's results, which share no memory with an operand.
        allocate: function that inserts the op for a new buffer.
    """
    block = Block()
    builder = Builder(InsertPoint.at_end(block))
    match op:
        case IfOp():
            _lower_if(op, operands, results, builder)
        case BindOp() | CallOp():
            builder.insert(func.CallOp(op.body, [*operands, *results], []))
        case ForOp():
            _ForLowering(op, operands, results, allocate, builder).run(one_size(op.count))
        case WhileOp():
            _WhileLowering(op, operands, results, allocate, builder).run(op.most)
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
    """Base of loop lowerings.

    Each state has two ping-pong buffers: the op's result and a new one. The body reads one buffer
    and writes the other; then the loop exchanges the two.
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
        leading = len(operands) - len(op.values)
        self._builder = builder
        self._allocate = allocate
        self._leading = operands[:leading]
        self._initial = operands[leading:][:carried]
        self._invariant = operands[leading:][carried:]
        self._results, self._stacked = results[:carried], results[carried:]
        self._body = op.body
        self._number = allocate(TensorType(i64, []))
        self._beside = [allocate(_tensor(result)) for result in self._results]
        self._rows = [allocate(_row_type(stacked)) for stacked in self._stacked]

    def _copy(self, sources: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        for source, target in zip(sources, targets, strict=True):
            _copy_buffer(self._builder, source, target)

    def _iterate(
        self,
        inner: Builder,
        number: SSAValue,
        states: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
    ) -> None:
        """Emits one iteration, which reads `states` and writes `outputs` and the rows."""
        inner.insert(memref.StoreOp.get(number, self._number, []))
        arguments = [self._number, *states, *self._invariant]
        inner.insert(func.CallOp(self._body, [*arguments, *outputs, *self._rows], []))

    def _place_rows(self, inner: Builder, iteration: SSAValue) -> None:
        for row, stacked in zip(self._rows, self._stacked, strict=True):
            _copy_to_row(inner, row, stacked, iteration)


class _ForLowering(_LoopLowering):
    def run(self, count: Size) -> None:
        """Emits the loop. The first ping-pong buffer is chosen so that the last iteration writes
        the results. If the trip count is not known, the states are copied to the results.
        """
        first, second = self._results, self._beside
        if isinstance(count, int) and count % 2:
            first, second = second, first
        self._copy(self._initial, first)
        begin, end, step = (_size(self._builder, n) for n in (0, count, 1))
        buffers = [*first, *second]
        block = Block(arg_types=[_INDEX, *(buffer.type for buffer in buffers)])
        inner = Builder(InsertPoint.at_end(block))
        iteration, *inside = block.args
        states, following = inside[: len(first)], inside[len(first) :]
        number = inner.insert(arith.IndexCastOp(iteration, i64)).result
        self._iterate(inner, number, states, following)
        self._place_rows(inner, iteration)
        inner.insert(scf.YieldOp(*following, *states))
        loop = self._builder.insert(scf.ForOp(begin, end, step, buffers, Region(block)))
        if not isinstance(count, int):
            self._copy(loop.results[: len(first)], self._results)


class _WhileLowering(_LoopLowering):
    def run(self, most: int | None) -> None:
        """Emits the loop, and copies the states to the results at its end.

        Args:
            most: the number of rows, if there are rows.
        """
        going = self._allocate(TensorType(i1, []))
        limit, condition = self._leading
        self._copy([*self._initial, condition], [*self._results, going])
        bound = self._builder.insert(memref.LoadOp.get(limit, [])).res
        if most is not None:
            rows = _constant(self._builder, most, i64)
            bound = self._builder.insert(arith.MinSIOp(bound, rows)).result
        buffers = [*self._results, *self._beside]
        types = [i64, *(buffer.type for buffer in buffers)]
        before, after = Block(arg_types=types), Block(arg_types=types)
        _decide(before, going, bound)
        inner = Builder(InsertPoint.at_end(after))
        number, *inside = after.args
        states, following = inside[: len(self._results)], inside[len(self._results) :]
        self._iterate(inner, number, states, [going, *following])
        if self._rows:
            self._place_rows(inner, inner.insert(arith.IndexCastOp(number, _INDEX)).result)
        next_number = inner.insert(arith.AddiOp(number, _constant(inner, 1, i64))).result
        inner.insert(scf.YieldOp(next_number, *following, *states))
        arguments = [_constant(self._builder, 0, i64), *buffers]
        loop = self._builder.insert(scf.WhileOp(arguments, types, Region(before), Region(after)))
        self._copy(loop.results[1 : 1 + len(self._results)], self._results)


def _decide(block: Block, going: SSAValue, bound: SSAValue) -> None:
    """Emits the condition for another iteration."""
    builder = Builder(InsertPoint.at_end(block))
    goes_on = builder.insert(memref.LoadOp.get(going, [])).res
    below = builder.insert(arith.CmpiOp(block.args[0], bound, "slt")).result
    both = builder.insert(arith.AndIOp(goes_on, below)).result
    builder.insert(scf.ConditionOp(both, *block.args))


def _copy_buffer(builder: Builder, source: SSAValue, target: SSAValue) -> None:
    if not is_symbolic(_tensor_sizes(source)):
        builder.insert(memref.CopyOp(source, target))
        return
    count = math.prod(_tensor_sizes(source))
    _copy_elements(builder, source, target, count, _size(builder, 0))


def _copy_to_row(builder: Builder, row: SSAValue, stacked: SSAValue, iteration: SSAValue) -> None:
    count = math.prod(_tensor_sizes(row))
    first = builder.insert(arith.MuliOp(iteration, _size(builder, count))).result
    _copy_elements(builder, row, stacked, count, first)


def _copy_elements(
    builder: Builder, source: SSAValue, target: SSAValue, count: Size, first: SSAValue
) -> None:
    """Copies `count` consecutive elements of `source` to `target`, from element `first` on."""
    given, taken = _flat(builder, source), _flat(builder, target)
    block = Block(arg_types=[_INDEX])
    inner = Builder(InsertPoint.at_end(block))
    element = inner.insert(memref.LoadOp.get(given, [block.args[0]])).res
    place = inner.insert(arith.AddiOp(first, block.args[0])).result
    inner.insert(memref.StoreOp.get(element, taken, [place]))
    inner.insert(scf.YieldOp())
    begin, end, step = (_size(builder, n) for n in (0, count, 1))
    builder.insert(scf.ForOp(begin, end, step, [], Region(block)))


def _flat(builder: Builder, buffer: SSAValue) -> SSAValue:
    """Returns a dense buffer as a one-dimensional one."""
    type_ = _tensor(buffer)
    flat = dense_buffer(type_.element_type, (math.prod(type_sizes(type_)),))
    return builder.insert(ViewOp(buffer, flat)).result


def _tensor(buffer: SSAValue) -> Tensor:
    """Returns the type of the tensor that a buffer holds."""
    assert isinstance(buffer.type, MemRefType)
    return tensor_of(buffer.type.element_type, buffer_sizes(buffer.type))


def _tensor_sizes(buffer: SSAValue) -> tuple[Size, ...]:
    return type_sizes(_tensor(buffer))


def _row_type(stacked: SSAValue) -> Tensor:
    type_ = _tensor(stacked)
    return tensor_of(type_.element_type, type_sizes(type_)[1:])


def _size(builder: Builder, size: Size) -> SSAValue:
    if isinstance(size, Dim):
        return builder.insert(SizeOp(size)).value
    return _constant(builder, size, _INDEX)


def _constant(builder: Builder, value: int, type_: IndexType | IntegerType) -> SSAValue:
    return builder.insert(arith.ConstantOp.from_int_and_width(value, type_)).result


def called_symbols(op: Operation) -> list[tuple[func.CallOp, str]]:
    """Returns the calls in an op or its regions, with the symbols that they call."""
    return [
        (inner, inner.callee.root_reference.data)
        for inner in op.walk()
        if isinstance(inner, func.CallOp)
    ]
