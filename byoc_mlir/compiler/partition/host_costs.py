"""What a region would take on the host, by the rates of its kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable

from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from byoc_mlir.compiler.partition.alone import alone_on_host
from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay.base import relay_name, shape_of
from byoc_mlir.dialects.relay.elementwise import BroadcastOp, UnaryOp
from byoc_mlir.kernels.costs import ActivationRates, ConvolutionRates, rates
from byoc_mlir.lowering.convolutions.choose_convolution_algorithms import estimated_milliseconds
from byoc_mlir.lowering.convolutions.description import convolutions
from byoc_mlir.transforms.blocks import is_constant, is_terminator
from byoc_mlir.transforms.work import multiplications

_FUNCTIONS = ("erf", "exp", "gelu", "sigmoid", "softmax", "swish", "tanh")
"""How the names of ops end that compute a function of each element."""

_RECURRENT = ("lstm", "gru", "rnn")
"""What is a chain of steps, for which there is no rate."""

_NOTHING = ("reshape", "squeeze", "expand_dims", "batch_flatten")
"""What moves no element."""

_BYTES = 4


def host_milliseconds(region: FuncOp) -> float | None:
    """About what the host takes for a region, on one thread; `None` where an op has no estimate.

    Products cost what the kernels that compute them do, functions of elements their rate, and
    everything else the bytes that it moves: nothing, where it is fused into the op before it.
    """
    blocks = tuple(host_blocks(alone_on_host(region)))
    if not all(_is_known(op) for block in blocks for op in block.ops):
        return None
    return sum(map(_milliseconds, blocks))


def _is_known(op: Operation) -> bool:
    if is_terminator(op) or is_constant(op):
        return True
    is_recurrent = relay_name(op).rpartition(".")[2] in _RECURRENT
    return not is_recurrent and all(map(_is_f32, op.results))


def _is_f32(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and value.type.element_type == f32


def _milliseconds(block: Block) -> float:
    by_kernels = {op: estimated_milliseconds(op, 1) for op in convolutions(tuple(block.ops))}
    others = (op for op in block.ops if not (op in by_kernels or is_constant(op)))
    return sum(by_kernels.values()) + sum(_of_op(op) for op in others if not is_terminator(op))


def _of_op(op: Operation) -> float:
    known, products = rates(ConvolutionRates), multiplications(op)
    if products:
        weights = _bytes(value for value in op.operands if _is_weight(value))
        return products / known.products + weights / known.weight_bytes
    milliseconds = 0.0
    if relay_name(op).endswith(_FUNCTIONS):
        milliseconds += _elements(op.results) / rates(ActivationRates).swish
    if not (relay_name(op).endswith(_NOTHING) or _is_fused(op)):
        milliseconds += _bytes((*op.operands, *op.results)) / known.transformed_bytes
    return milliseconds


def _is_weight(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and is_constant(value.owner)


def _is_fused(op: Operation) -> bool:
    """Whether it is computed where the result of another op is written."""
    return isinstance(op, UnaryOp | BroadcastOp) and any(
        isinstance(value.owner, Operation) and not is_constant(value.owner) for value in op.operands
    )


def _elements(values: Iterable[SSAValue]) -> int:
    return sum(math.prod(shape_of(value)) for value in values)


def _bytes(values: Iterable[SSAValue]) -> int:
    return _BYTES * _elements(values)
