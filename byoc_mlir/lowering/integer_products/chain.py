"""What follows an integer product, as far as its kernel does it on the way to memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.relay import RelayOp, elementwise, nn, qnn
from byoc_mlir.dialects.relay.base import rank_of, sizes_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.kernels.integer_gemm.epilogue import IntegerEpilogue
from byoc_mlir.lowering.integer_products.product import IntegerMatmul, constant_of
from byoc_mlir.tensors import Array

_ONE = np.ones((), np.float32)
"""The scale of sums that are only converted."""

_SUMS = IntegerEpilogue()
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


@dataclass(frozen=True)
class IntegerGemmChain:
    """A product and the ops after it, each the only one to read the one before."""

    ops: tuple[RelayOp, ...]
    bias: SSAValue | None = None
    """A vector of `i32`, one for each channel."""
    scale: SSAValue | Array | None = None
    """One for all sums, or one for each channel."""
    offset: SSAValue | None = None
    """One for all, or one for each channel."""
    epilogue: IntegerEpilogue = _SUMS

    @property
    def result(self) -> SSAValue:
        """That of the last op."""
        return self.ops[-1].results[0]


def chain_of(product: IntegerMatmul) -> IntegerGemmChain:
    """The longest chain behind a product."""
    chain = IntegerGemmChain((product.op,))
    while True:
        longer = _longer(chain, product)
        if longer is None:
            return chain
        chain = longer


def _longer(chain: IntegerGemmChain, product: IntegerMatmul) -> IntegerGemmChain | None:
    """The chain with the op that follows; `None` where it ends."""
    op = _only_reader(chain.result)
    if op is None:
        return None
    added = _with(chain, op, product)
    return None if added is None else replace(added, ops=(*chain.ops, op))


def _only_reader(value: SSAValue) -> RelayOp | None:
    uses = tuple(value.uses)
    if len(uses) != 1:
        return None
    op: Operation = uses[0].operation
    return op if isinstance(op, RelayOp) else None


def _with(chain: IntegerGemmChain, op: RelayOp, product: IntegerMatmul) -> IntegerGemmChain | None:
    kind = chain.epilogue.kind
    match op:
        case nn.BiasAddOp() if kind == "sums" and chain.bias is None:
            return replace(chain, bias=op.bias) if _along(op, op.positive_axis, product) else None
        case qnn.DequantizeOp() if kind == "sums":
            return _dequantized(chain, op, product)
        case qnn.RequantizeOp() if kind == "sums":
            return _requantized(chain, op, product)
        case nn.BiasAddOp() if kind == "numbers" and chain.offset is None:
            is_along = _along(op, op.positive_axis, product)
            return _with_offset(chain, op.bias) if is_along else None
        case elementwise.CastOp() if kind == "sums" and op.dtype == f32:
            return replace(chain, scale=_ONE, epilogue=IntegerEpilogue("numbers"))
        case elementwise.MultiplyOp() if chain.scale is _ONE:
            scale = _other(chain, op, product)
            return None if scale is None else replace(chain, scale=scale)
        case elementwise.AddOp() if kind == "numbers" and chain.offset is None:
            offset = _other(chain, op, product)
            return None if offset is None else _with_offset(chain, offset)
        case elementwise.ClipOp() if kind == "bytes":
            return _clipped(chain, op)
        case _:
            return None


def _with_offset(chain: IntegerGemmChain, offset: SSAValue) -> IntegerGemmChain:
    return replace(chain, offset=offset, epilogue=replace(chain.epilogue, offset=True))


def _other(
    chain: IntegerGemmChain, op: elementwise.AddOp | elementwise.MultiplyOp, product: IntegerMatmul
) -> SSAValue | None:
    """What is combined with the chain's result: one number, or a vector along the channels."""
    other = op.lhs if op.rhs is chain.result else op.rhs
    if sizes_of(op.output) != sizes_of(chain.result) or other is chain.result:
        return None
    shape, count, rank = sizes_of(other), math.prod(sizes_of(other)), rank_of(op.output)
    axis = product.channel_axis % rank - rank
    is_along = count == product.outputs and len(shape) >= -axis and shape[axis] == count
    return other if is_along or count == 1 else None


def _along(op: RelayOp, axis: int, product: IntegerMatmul) -> bool:
    """Whether an axis is that of the product's channels."""
    return axis == product.channel_axis % rank_of(op.results[0])


def _dequantized(
    chain: IntegerGemmChain, op: qnn.DequantizeOp, product: IntegerMatmul
) -> IntegerGemmChain | None:
    if not _is_zero(op.zero_point) or op.block_size.value.data:
        return None
    if rank_of(op.scale) and not _along(op, op.positive_axis, product):
        return None
    return replace(chain, scale=op.scale, epilogue=IntegerEpilogue("numbers"))


def _requantized(
    chain: IntegerGemmChain, op: qnn.RequantizeOp, product: IntegerMatmul
) -> IntegerGemmChain | None:
    dtype = numpy_dtype(tensor_type(op.output).element_type)
    given, wanted = constant_of(op.input_scale), constant_of(op.output_scale)
    zero_point = constant_of(op.output_zero_point)
    if given is None or wanted is None or zero_point is None or dtype not in _BYTES:
        return None
    if not _is_zero(op.input_zero_point):
        return None
    if given.ndim and not _along(op, op.positive_axis, product):
        return None
    limits = np.iinfo(dtype)
    epilogue = IntegerEpilogue(
        "bytes", zero_point=int(zero_point), lower=int(limits.min), upper=int(limits.max)
    )
    return replace(chain, scale=given / wanted, epilogue=epilogue)


def _clipped(chain: IntegerGemmChain, op: elementwise.ClipOp) -> IntegerGemmChain:
    """The limits of a chain and those of an op that follows it."""
    epilogue = chain.epilogue
    low, high = np.clip(
        [np.ceil(op.a_min.value.data), np.floor(op.a_max.value.data)],
        epilogue.lower,
        epilogue.upper,
    )
    return replace(chain, epilogue=replace(epilogue, lower=int(low), upper=int(high)))


def _is_zero(zero_point: SSAValue) -> bool:
    zeros = constant_of(zero_point)
    return zeros is not None and not zeros.any()
