"""GEMMs with blockwise quantised weights of a few bits: kernels that call the functions of
`blockwise_kernels`, and distribute groups of units among threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType, f32, i8
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects import host
from byoc_mlir.dialects.relay import blockwise as relay
from byoc_mlir.dialects.relay.base import shape_of, sizes_of, tensor_of, tensor_type, type_sizes
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Size, largest
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter
from byoc_mlir.lowering.relay_to_linalg.blockwise_bytes import (
    FewRowsOfBytes,
    rounded_lanes,
    takes_bytes,
)
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import (
    ELEMENTS,
    PANEL,
    BlockwiseForm,
    BlockwiseFunction,
    BlockwiseWriter,
)
from byoc_mlir.lowering.relay_to_linalg.blockwise_rows import FewRows
from byoc_mlir.lowering.relay_to_linalg.blockwise_tiles import ManyRows
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.runtime.system.machine import target_cpu

_FEW_ROWS = 4
_TILE_UNITS = 4


@dataclass(frozen=True)
class _Gemm:
    """GEMM with weights of a form."""

    form: BlockwiseForm
    rows: Size
    usual_rows: int
    """Number of rows for which code is optimised."""
    units: int
    blocks: int
    """Number of blocks of a unit."""

    @property
    def steps(self) -> int:
        return self.blocks * self.form.block

    @property
    def few_rows(self) -> int:
        """Returns the number of rows if they are few, else 0; for a symbolic number, the limit of
        few rows.
        """
        if isinstance(self.rows, int):
            return self.rows if self.rows <= _FEW_ROWS else 0
        return _FEW_ROWS


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
    form = BlockwiseForm(bytes_, op.bits.value.data, lanes, shape_of(op.zero_points) == (1, 1))
    gemm = _Gemm(form, rows, hint(rows), units, blocks)
    if rows == 0 or not units:
        return [b.empty(output)]
    data = b.reshape(op.data, [rows, width])
    if width != gemm.steps:
        data = b.insert(data, b.filled(0, tensor_of(f32, [rows, gemm.steps])), [0, 0])
    operands = [data, op.codes, op.scales, op.zero_points]
    few = FewRowsOfBytes if op.rounds.value.data and takes_bytes(form) else FewRows
    result = b.emit(_kernel(gemm, few, operands, b))
    return [b.reshape(result, type_sizes(output))]


def _kernel(
    gemm: _Gemm, few: type[FewRows], operands: Sequence[SSAValue], b: LinalgBuilder
) -> host.KernelOp:
    results = [tensor_of(f32, [gemm.rows, gemm.units]), tensor_of(f32, [gemm.rows, gemm.steps])]
    rows, blocks = gemm.few_rows, gemm.blocks
    if rows and few is FewRowsOfBytes:
        results += [
            TensorType(i8, [rows, gemm.steps]),
            TensorType(f32, [rows, blocks, rounded_lanes(gemm.form)]),
            TensorType(f32, [rows, blocks]),
        ]
    elif rows:
        results.append(TensorType(f32, [rows, blocks, gemm.form.lanes]))
    types = tuple(host.buffer_type(type_) for type_ in (*(v.type for v in operands), *results))
    body, functions = _body(gemm, few, types)
    for function in functions:
        b.define(function)
    return host.KernelOp("blockwise_dense", operands, results, body.clone())


@lru_cache(maxsize=64)
def _body(
    gemm: _Gemm, few: type[FewRows], types: tuple[Attribute, ...]
) -> tuple[Region, Sequence[BlockwiseFunction]]:
    """Returns the body of a kernel, to be cloned, and the functions that it calls."""
    block = Block(arg_types=types)
    end = host.YieldOp()
    block.add_op(end)
    writer = _Calls(LoopWriter(block, end), gemm, block.args)
    if isinstance(gemm.rows, int):
        if gemm.few_rows:
            writer.write(few, gemm.rows, gemm.usual_rows)
        else:
            writer.write(ManyRows, None, gemm.usual_rows)
    else:
        with writer.code.if_positive(largest(0, _FEW_ROWS + 1 - gemm.rows)):
            writer.write(few, None, 1)
        with writer.code.if_positive(largest(0, gemm.rows - _FEW_ROWS)):
            writer.write(ManyRows, None, gemm.usual_rows)
    return Region(block), tuple(writer.functions)


class _Calls:
    """Writer of the calls of a GEMM's functions."""

    def __init__(self, code: LoopWriter, gemm: _Gemm, buffers: Sequence[SSAValue]):
        self.code = code
        self.functions: dict[BlockwiseFunction, None] = {}
        """Functions that are called."""
        self._gemm = gemm
        self._buffers = [code.unknown_size(buffer) for buffer in buffers]
        self._sizes = [code.index(size) for size in (gemm.rows, gemm.units, gemm.blocks)]

    def write(self, kind: type[BlockwiseWriter], rows: int | None, usual_rows: int) -> None:
        """Emits the calls; units are computed on all threads if there is enough work.

        Args:
            kind: the functions' code.
            rows: number of rows that are computed together, `None` if it is not known.
            usual_rows: number of rows for which code is optimised.
        """
        code, gemm = self.code, self._gemm
        call = partial(self._call, kind, rows)
        if kind is ManyRows:
            with code.parallel([gemm.rows], cycles=usual_rows * gemm.steps) as (row,):
                call(0, row, 1)
        else:
            call(0, 0, gemm.rows)
        full = gemm.units - gemm.units % _TILE_UNITS
        work = usual_rows * gemm.units * gemm.steps / ASSUMED.block_products
        if work >= ASSUMED.parallel_cycles and full > PANEL:
            with code.parallel([full], [PANEL], cycles=work) as (first,):
                call(_TILE_UNITS, first, self._count(full, first))
        elif full:
            with code.loop(full, step=PANEL) as loop:
                call(_TILE_UNITS, loop.counter, self._count(full, loop.counter))
        if full < gemm.units:
            call(1, full, gemm.units - full)

    def _count(self, full: int, first: SSAValue) -> Index:
        left = self.code.add_index(full, self.code.scale_index(first, -1))
        return self.code.minimum(left, PANEL)

    def _call(
        self, kind: type[BlockwiseWriter], rows: int | None, tile: int, first: Index, count: Index
    ) -> None:
        function = BlockwiseFunction(kind, self._gemm.form, rows, tile)
        self.functions[function] = None
        buffers = self._buffers[: len(ELEMENTS) + len(kind.MEMORY)]
        operands = [*buffers, *self._sizes, self.code.index(first), self.code.index(count)]
        self.code.add(func.CallOp(function.name, operands, []))


FUNCTIONS: Lowerings = {relay.BlockwiseDenseOp: _lower_blockwise_dense}
