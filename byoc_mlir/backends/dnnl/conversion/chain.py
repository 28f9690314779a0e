"""Chains of steps on a primitive's result before it is stored: bias, activations, binary ops with
other tensors.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.backends.dnnl.partition.activations import Activation, Reader
from byoc_mlir.dialects.relay.elementwise import (
    AddOp,
    DivideOp,
    MultiplyOp,
    SubtractOp,
)
from byoc_mlir.dialects.relay.nn import BiasAddOp, PreluOp

BINARY_ALGORITHMS: dict[type[Operation], str] = {
    AddOp: "add",
    MultiplyOp: "mul",
    SubtractOp: "sub",
    DivideOp: "div",
    PreluOp: "prelu",
}
_COMMUTATIVE = (AddOp, MultiplyOp)


@dataclass(frozen=True)
class PerChannel:
    """Addition of `bias [C]` along `axis`."""

    bias: SSAValue
    axis: int


@dataclass(frozen=True)
class Combined:
    """Combination with another tensor, which broadcasts to the shape of the chain."""

    algorithm: str
    other: SSAValue


Step: TypeAlias = Activation | PerChannel | Combined


@dataclass(frozen=True)
class PostOpChain:
    """Source of a chain, and the steps that are applied to its elements."""

    source: SSAValue
    steps: tuple[Step, ...]


def read_chain(reader: Reader, value: SSAValue, group: Collection[Operation]) -> PostOpChain:
    """Returns the longest chain of steps that ends in `value` and consists of ops of `group`."""
    steps: list[Step] = []
    while reader.owner(value) in group:
        found = _step(reader, value, group)
        if found is None:
            break
        value, step = found
        steps.append(step)
    return PostOpChain(reader.resolve(value), tuple(reversed(steps)))


def _step(
    reader: Reader, value: SSAValue, group: Collection[Operation]
) -> tuple[SSAValue, Step] | None:
    activation = reader.activation(value)
    if activation is not None:
        return activation.data, activation
    op = reader.owner(value)
    if isinstance(op, BiasAddOp):
        return reader.resolve(op.data), PerChannel(reader.resolve(op.bias), op.positive_axis)
    if op is None or type(op) not in BINARY_ALGORITHMS:
        return None
    lhs, rhs = (reader.resolve(operand) for operand in op.operands)
    type_ = reader.resolve(value).type
    if isinstance(op, _COMMUTATIVE) and _goes_on(reader, rhs, type_, group) > _goes_on(
        reader, lhs, type_, group
    ):
        lhs, rhs = rhs, lhs
    if lhs.type != type_:
        return None
    return lhs, Combined(BINARY_ALGORITHMS[type(op)], rhs)


def _goes_on(
    reader: Reader, operand: SSAValue, type_: Attribute, group: Collection[Operation]
) -> int:
    """Returns a rank for an operand as the continuation of the chain.

    2 for a value computed in `group`, 1 for another value, 0 for an operand that broadcasts.
    """
    if operand.type != type_:
        return 0
    return 2 if reader.owner(operand) in group else 1
