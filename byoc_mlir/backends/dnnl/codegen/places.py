"""Where every value of a region lives while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl import layouts
from byoc_mlir.backends.dnnl.dialect import PermuteOp, SumAttr, ViewOp, layout_of
from byoc_mlir.backends.dnnl.dialect.base import PostOpsOp
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import shape_of

ALIGNMENT = 64


@dataclass(frozen=True)
class Input:
    """The memory of a region's input."""

    index: int


@dataclass(frozen=True)
class Output:
    """The memory of a region's output."""

    index: int


@dataclass(frozen=True)
class Workspace:
    """Bytes of the region's workspace from an offset on."""

    offset: int


@dataclass(frozen=True)
class Stored:
    """A constant."""

    constant: ConstantOp


Place: TypeAlias = Input | Output | Workspace | Stored


@dataclass(frozen=True)
class Places:
    """The place of every value, and of every op's scratchpad."""

    values: dict[SSAValue, Place]
    scratchpads: dict[Operation, Workspace]
    workspace_bytes: int


def root(value: SSAValue) -> SSAValue:
    """The value whose memory this one shares: through views, permutations and in-place sums."""
    while isinstance(value.owner, Operation):
        source = _shared_operand(value.owner)
        if source is None:
            break
        value = source
    return value


def _shared_operand(op: Operation) -> SSAValue | None:
    if isinstance(op, ViewOp | PermuteOp):
        return op.source
    if isinstance(op, PostOpsOp):
        readers = (one for one in op.post_ops if not hasattr(one, "alpha"))
        for attribute, operand in zip(readers, op.post_op_operands, strict=True):
            if isinstance(attribute, SumAttr):
                return operand
    return None


@dataclass
class _Interval:
    """Bytes that are needed from one op to another, both included."""

    first: int
    last: int
    size: int
    offset: int = 0


def assign_places(func: FuncOp, scratchpads: dict[Operation, int]) -> Places:
    """Plans the workspace, where values and scratchpads that are never needed at once share memory.

    Args:
        scratchpads: the bytes of scratchpad that each primitive needs.
    """
    block = func.body.block
    fixed: dict[SSAValue, Place] = {
        argument: Input(index) for index, argument in enumerate(block.args)
    }
    last = block.last_op
    assert isinstance(last, ReturnOp)
    fixed |= {root(value): Output(index) for index, value in enumerate(last.operands)}
    intervals: dict[SSAValue | Operation, _Interval] = {}
    shown: dict[SSAValue, SSAValue] = {argument: argument for argument in block.args}
    for position, op in enumerate(block.ops):
        if isinstance(op, ConstantOp):
            fixed[op.output] = Stored(op)
        for operand in op.operands:
            if shown[operand] in intervals:
                intervals[shown[operand]].last = position
        for result in op.results:
            base = shown[result] = root(result)
            if base is result and base not in fixed:
                intervals[base] = _Interval(position, position, _size_of(base))
        if scratchpads.get(op):
            intervals[op] = _Interval(position, position, scratchpads[op])
    total = _pack(list(intervals.values()))
    places = {
        value: fixed.get(base) or Workspace(intervals[base].offset) for value, base in shown.items()
    }
    pads = {op: Workspace(intervals[op].offset) for op in scratchpads if op in intervals}
    return Places(places, pads, total)


def _size_of(value: SSAValue) -> int:
    return layouts.byte_size(shape_of(value), layout_of(value))


def _pack(intervals: list[_Interval]) -> int:
    """Gives every interval an offset, the largest first, each at the lowest place that is free."""
    placed: list[_Interval] = []
    for interval in sorted(intervals, key=lambda one: (-one.size, one.first)):
        rivals = sorted(
            (one for one in placed if one.first <= interval.last and interval.first <= one.last),
            key=lambda one: one.offset,
        )
        offset = 0
        for rival in rivals:
            if offset + interval.size <= rival.offset:
                break
            offset = max(offset, _aligned(rival.offset + rival.size))
        interval.offset = offset
        placed.append(interval)
    return max((_aligned(one.offset + one.size) for one in placed), default=0)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
