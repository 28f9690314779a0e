"""Conversion of the steps of a chain to post-ops of a `dnnl` op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.conversion.builder import Builder
from byoc_mlir.backends.dnnl.conversion.chain import PerChannel, Step
from byoc_mlir.backends.dnnl.partition.activations import Activation
from byoc_mlir.dialects.relay.base import shape_of

Reshape = Callable[[SSAValue], SSAValue]
"""Function that reshapes an operand from the chain's rank to the primitive's rank."""


@dataclass(frozen=True)
class PostOps:
    """Post-op attributes, and the operands of the post-ops."""

    attributes: ArrayAttr[Attribute]
    operands: tuple[SSAValue, ...]


def take_bias(
    builder: Builder, steps: Sequence[Step], axis: int, rank: int
) -> tuple[SSAValue | None, Sequence[Step]]:
    """Returns the bias `[C]` that the first step adds along `axis`, or `None`, and the remaining
    steps.
    """
    if not steps:
        return None, steps
    bias = _bias(builder, steps[0], axis, rank)
    return bias, steps if bias is None else steps[1:]


def _bias(builder: Builder, step: Step, axis: int, rank: int) -> SSAValue | None:
    if isinstance(step, Activation):
        return None
    if isinstance(step, PerChannel):
        return builder.value(step.bias) if step.axis == axis else None
    shape = shape_of(step.other)
    offset = rank - len(shape)
    elsewhere = [size for position, size in enumerate(shape) if position + offset != axis]
    if step.algorithm != "add" or offset > axis or any(size != 1 for size in elsewhere):
        return None
    return builder.view(builder.value(step.other), (shape[axis - offset],))


def post_ops(
    builder: Builder, steps: Sequence[Step], rank: int, reshape: Reshape = lambda value: value
) -> PostOps:
    """Converts the steps to post-ops of an op whose result has rank `rank` before `reshape`."""
    attributes: list[Attribute] = []
    operands: list[SSAValue] = []
    for step in steps:
        if isinstance(step, Activation):
            attributes.append(dnnl.EltwiseAttr.of(step.algorithm, step.alpha, step.beta))
            continue
        if isinstance(step, PerChannel):
            attributes.append(dnnl.BinaryAttr.of("add"))
            operand = builder.channels(builder.value(step.bias), rank, step.axis)
        else:
            attributes.append(dnnl.BinaryAttr.of(step.algorithm))
            operand = builder.expanded(builder.value(step.other), rank)
        operands.append(reshape(operand))
    return PostOps(ArrayAttr(attributes), tuple(operands))
