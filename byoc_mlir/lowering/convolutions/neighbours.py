"""Which convolutions read what another one writes, with nothing between that minds the layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.relay import nn
from byoc_mlir.dialects.relay.base import sizes_of
from byoc_mlir.dialects.relay.elementwise import BroadcastOp, UnaryOp
from byoc_mlir.dialects.relay.window import ConvOp

_PASSED = (UnaryOp, BroadcastOp, nn.BiasAddOp)


def neighbours(op: ConvOp) -> Iterator[tuple[ConvOp, SSAValue]]:
    """The convolutions before and behind one, with element-wise ops between at most, and what it
    reads or writes of them.
    """
    for value, around in ((op.data, _writers(op.data)), (op.output, _readers(op.output))):
        for found in around:
            if isinstance(found, ConvOp):
                yield found, value


def _writers(value: SSAValue) -> Iterable[Operation]:
    """What computes a value, beyond element-wise ops."""
    pending, seen, found = [value], set[Operation](), list[Operation]()
    while pending:
        one = pending.pop()
        op = one.owner
        if not isinstance(op, Operation) or op in seen:
            continue
        seen.add(op)
        if isinstance(op, _PASSED):
            pending += [part for part in op.operands if sizes_of(part) == sizes_of(one)]
        else:
            found.append(op)
    return found


def _readers(value: SSAValue) -> Iterable[Operation]:
    """What reads a value, beyond element-wise ops."""
    pending, seen, found = [value], set[Operation](), list[Operation]()
    while pending:
        one = pending.pop()
        for use in one.uses:
            op = use.operation
            if op in seen:
                continue
            seen.add(op)
            if isinstance(op, _PASSED):
                pending += [part for part in op.results if sizes_of(part) == sizes_of(one)]
            else:
                found.append(op)
    return found
