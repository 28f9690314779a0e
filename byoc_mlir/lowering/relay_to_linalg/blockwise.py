"""GEMMs with blockwise quantised weights of a few bits, as one kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from xdsl.dialects.builtin import TensorType, f32, i8
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects import host
from byoc_mlir.dialects.relay import blockwise as relay
from byoc_mlir.dialects.relay.base import shape_of, sizes_of, tensor_of, tensor_type, type_sizes
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import largest
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.lowering.linalg_to_loops.code import LoopWriter
from byoc_mlir.lowering.relay_to_linalg.blockwise_bytes import (
    FewRowsOfBytes,
    RoundedData,
    rounded_lanes,
    takes_bytes,
)
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import (
    BlockwiseSizes,
    Buffers,
    FewRows,
    ManyRows,
)
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.runtime.system.machine import target_cpu

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
    lanes = VectorUnit.of(target_cpu().features).lanes
    sizes = BlockwiseSizes(rows, units, blocks, bytes_, op.bits.value.data, hint(rows), lanes)
    if rows == 0 or not sizes.units:
        return [b.empty(output)]
    data = b.reshape(op.data, [rows, width])
    if width != sizes.steps:
        data = b.insert(data, b.filled(0, tensor_of(f32, [rows, sizes.steps])), [0, 0])
    operands = [data, op.codes, op.scales, op.zero_points]
    result = b.emit(_kernel(op, sizes, operands))
    return [b.reshape(result, type_sizes(output))]


def _kernel(
    op: relay.BlockwiseDenseOp, sizes: BlockwiseSizes, operands: Sequence[SSAValue]
) -> host.KernelOp:
    results = [
        tensor_of(f32, [sizes.rows, sizes.units]),
        tensor_of(f32, [sizes.rows, sizes.steps]),
    ]
    few = _few_rows(sizes)
    rounds = bool(op.rounds.value.data) and takes_bytes(sizes)
    if few and rounds:
        results += [
            TensorType(i8, [few, sizes.steps]),
            TensorType(f32, [few, sizes.blocks, rounded_lanes(sizes)]),
            TensorType(f32, [few, sizes.blocks]),
        ]
    elif few:
        results.append(TensorType(f32, [few, sizes.blocks, sizes.lanes]))
    types = tuple(host.buffer_type(type_) for type_ in (*(v.type for v in operands), *results))
    one_zero = shape_of(op.zero_points) == (1, 1)
    body = _body(sizes, types, one_zero=one_zero, rounds=rounds).clone()
    for inner in body.walk():
        inner.location = op.location
    return host.KernelOp("blockwise_dense", operands, results, body)


@lru_cache(maxsize=64)
def _body(
    sizes: BlockwiseSizes, types: tuple[Attribute, ...], *, one_zero: bool, rounds: bool
) -> Region:
    """Returns a clone of a cached kernel body, in a third of the time of building one."""
    block = Block(arg_types=types)
    end = host.YieldOp()
    block.add_op(end)
    code, buffers = LoopWriter(block, end), Buffers(*block.args[:6])

    def few_rows() -> FewRows:
        one_row = sizes if isinstance(sizes.rows, int) else replace(sizes, usual_rows=1)
        if rounds:
            rounded = RoundedData(*block.args[6:])
            return FewRowsOfBytes(code, one_row, buffers, rounded, one_zero=one_zero)
        return FewRows(code, one_row, buffers, block.args[6], one_zero=one_zero)

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


FUNCTIONS: Lowerings = {relay.BlockwiseDenseOp: _lower_blockwise_dense}
