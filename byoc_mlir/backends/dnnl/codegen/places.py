"""Where every value of a region lives while it runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl.calls import element_bytes
from byoc_mlir.backends.dnnl.descriptions import Types, data_type_of
from byoc_mlir.backends.dnnl.dialect import (
    ActivationOp,
    ExecutedOp,
    PermuteOp,
    SliceOp,
    SumAttr,
    ViewOp,
    layout_of,
)
from byoc_mlir.backends.dnnl.dialect.base import PostOpsOp
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.kernels.arena import Request, plan_offsets


@dataclass(frozen=True)
class Input:
    """The memory of a region's input, from a byte on."""

    index: int
    offset: int = 0


@dataclass(frozen=True)
class Output:
    """The memory of a region's output, from a byte on."""

    index: int
    offset: int = 0


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
    scratchpads: dict[ExecutedOp, Workspace]
    workspace_bytes: int


def root(value: SSAValue) -> SSAValue:
    """The value whose memory this one shares: through views, and what is done in place."""
    while isinstance(value.owner, Operation):
        source = _shared_operand(value.owner)
        if source is None:
            break
        value = source
    return value


def _shared_operand(op: Operation) -> SSAValue | None:
    if isinstance(op, ActivationOp | ViewOp | PermuteOp | SliceOp):
        return op.source
    if isinstance(op, PostOpsOp):
        readers = (one for one in op.post_ops if not hasattr(one, "alpha"))
        for attribute, operand in zip(readers, op.post_op_operands, strict=True):
            if isinstance(attribute, SumAttr):
                return operand
    return None


def assign_places(func: FuncOp, scratchpads: dict[ExecutedOp, int]) -> Places:
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
    requests: dict[SSAValue | Operation, Request] = {}
    shown: dict[SSAValue, SSAValue] = {argument: argument for argument in block.args}
    for op, (first, last) in _times(block.ops):
        if isinstance(op, ConstantOp):
            fixed[op.output] = Stored(op)
        for operand in op.operands:
            if shown[operand] in requests:
                requests[shown[operand]] = replace(requests[shown[operand]], last=last)
        for result in op.results:
            base = shown[result] = root(result)
            if base is result and base not in fixed:
                requests[base] = Request(_size_of(base), first, last)
        if isinstance(op, ExecutedOp) and scratchpads.get(op):
            requests[op] = Request(scratchpads[op], first, last)
    planned, total = plan_offsets(list(requests.values()))
    offsets = dict(zip(requests, planned, strict=True))
    places = {
        value: _moved(fixed.get(base) or Workspace(offsets[base]), _offset(value))
        for value, base in shown.items()
    }
    pads = {op: Workspace(offsets[op]) for op in scratchpads if op in offsets}
    return Places(places, pads, total)


def _times(ops: Iterable[Operation]) -> list[tuple[Operation, tuple[int, int]]]:
    """Every op with the first and the last position at which it may run."""
    listed = list(ops)
    spans = [[position, position] for position in range(len(listed))]
    for position, op in enumerate(listed):
        if isinstance(op, ExecutedOp) and op.concurrent.value.data:
            spans[position] = spans[position - 1]
            spans[position][1] = position
    return [(op, (first, last)) for op, (first, last) in zip(listed, spans, strict=True)]


def _offset(value: SSAValue) -> int:
    """The bytes by which a value begins after the one whose memory it shares."""
    total = 0
    while isinstance(value.owner, Operation):
        source = _shared_operand(value.owner)
        if source is None:
            break
        if isinstance(value.owner, SliceOp):
            total += value.owner.offset * element_bytes(data_type_of(value))
        value = source
    return total


def _moved(place: Place, offset: int) -> Place:
    if isinstance(place, Stored):
        assert not offset
        return place
    return replace(place, offset=place.offset + offset)


def _size_of(value: SSAValue) -> int:
    return Types(layout_of).of(value).byte_size
