"""GEMMs with blockwise quantised weights of a few bits, as one kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects import host
from byoc_mlir.dialects.relay import blockwise as relay
from byoc_mlir.dialects.relay.base import shape_of, sizes_of, tensor_of, tensor_type, type_sizes
from byoc_mlir.dialects.relay.constant import ConstantOp, derived_array
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import largest
from byoc_mlir.lowering.linalg_to_loops.code import LoopWriter
from byoc_mlir.lowering.pack_weights import panels
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import (
    LANES,
    BlockwiseSizes,
    Buffers,
    FewRows,
    ManyRows,
)
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.tensors import Array

_FEW_ROWS = 4


def _lower_blockwise_dense(op: relay.BlockwiseDenseOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    output = tensor_type(op.output)
    if output.element_type != f32:
        raise PassFailedException(
            f"{op.name} at {op.location}: elements are {output.element_type}, accepted is f32"
        )
    *outer, width = sizes_of(op.data)
    rows = math.prod(outer)
    units, blocks, bytes_ = shape_of(op.codes)
    sizes = BlockwiseSizes(rows, units, blocks, bytes_, op.bits.value.data, hint(rows))
    if rows == 0 or not sizes.units:
        return [b.empty(output)]
    data = b.reshape(op.data, [rows, width])
    if width != sizes.steps:
        data = b.insert(data, b.filled(0, tensor_of(f32, [rows, sizes.steps])), [0, 0])
    operands = [
        data,
        b.constant(_packed_codes(_constant(op, op.codes)), "packed_weight"),
        b.constant(_packed(_constant(op, op.scales)), "packed_scales"),
        b.constant(_packed(_constant(op, op.zero_points)), "packed_zero_points"),
    ]
    result = b.emit(_kernel(op, sizes, operands))
    return [b.reshape(result, type_sizes(output))]


def _kernel(
    op: relay.BlockwiseDenseOp, sizes: BlockwiseSizes, operands: Sequence[SSAValue]
) -> host.KernelOp:
    results = [tensor_of(f32, [sizes.rows, sizes.units])]
    few = _few_rows(sizes)
    if few:
        results.append(TensorType(f32, [few, sizes.blocks]))
    types = tuple(host.buffer_type(type_) for type_ in (*(v.type for v in operands), *results))
    body = _body(sizes, types, one_zero=shape_of(op.zero_points) == (1, 1)).clone()
    for inner in body.walk():
        inner.location = op.location
    return host.KernelOp("blockwise_dense", operands, results, body)


@lru_cache(maxsize=64)
def _body(sizes: BlockwiseSizes, types: tuple[Attribute, ...], *, one_zero: bool) -> Region:
    """Returns a clone of a cached kernel body, in a third of the time of building one."""
    block = Block(arg_types=types)
    end = host.YieldOp()
    block.add_op(end)
    code, buffers = LoopWriter(block, end), Buffers(*block.args[:5])

    def few_rows() -> FewRows:
        one_row = sizes if isinstance(sizes.rows, int) else replace(sizes, usual_rows=1)
        return FewRows(code, one_row, buffers, block.args[5], one_zero=one_zero)

    def many_rows() -> ManyRows:
        return ManyRows(code, sizes, buffers, one_zero=one_zero)

    if isinstance(sizes.rows, int):
        (few_rows() if _few_rows(sizes) else many_rows()).write()
        return Region(block)
    with code.if_positive(largest(0, _FEW_ROWS + 1 - sizes.rows)):
        few_rows().write()
    with code.if_positive(largest(0, sizes.rows - _FEW_ROWS)):
        many_rows().write()
    return Region(block)


def _few_rows(sizes: BlockwiseSizes) -> int:
    """Returns the number of rows if they are few, else 0; for a symbolic number, the limit of few
    rows.
    """
    if isinstance(sizes.rows, int):
        return sizes.rows if sizes.rows <= _FEW_ROWS else 0
    return _FEW_ROWS


def _constant(op: relay.BlockwiseDenseOp, value: SSAValue) -> Array:
    if not isinstance(value.owner, ConstantOp):
        raise PassFailedException(
            f"{op.name} at {op.location}: all operands but the first must be constants"
        )
    return value.owner.array


def _packed_codes(codes: Array) -> Array:
    """Packs codes `[units, blocks, bytes]` into `[panels, blocks * bytes, 16]`."""
    rows = codes.reshape(len(codes), -1).view(np.int8)
    return derived_array("blockwise_codes", [codes], lambda: panels(rows.T, LANES))


def _packed(numbers: Array) -> Array:
    """Packs scales or zero points `[units, blocks]` into `[panels, blocks, 16]`.

    A single value is repeated.
    """
    if numbers.shape == (1, 1):
        numbers = np.repeat(numbers, LANES, 0)
    return derived_array("blockwise_numbers", [numbers], lambda: panels(numbers.T, LANES))


FUNCTIONS: Lowerings = {relay.BlockwiseDenseOp: _lower_blockwise_dense}
