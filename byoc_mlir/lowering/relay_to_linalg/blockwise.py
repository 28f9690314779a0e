"""GEMMs with blockwise quantised weights of a few bits: kernels that call the functions of
`blockwise_kernels`, and distribute groups of units among threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias

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
from byoc_mlir.lowering.relay_to_linalg.blockwise_byte_matrices import ManyRowsByMatrices
from byoc_mlir.lowering.relay_to_linalg.blockwise_byte_rows import FewRowsOfBytes
from byoc_mlir.lowering.relay_to_linalg.blockwise_byte_tiles import ManyRowsOfBytes
from byoc_mlir.lowering.relay_to_linalg.blockwise_bytes import takes_bytes
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import (
    ELEMENTS,
    BlockwiseForm,
    BlockwiseFunction,
    BlockwiseWriter,
)
from byoc_mlir.lowering.relay_to_linalg.blockwise_rows import FewRows, lanes_of_block
from byoc_mlir.lowering.relay_to_linalg.blockwise_tiles import ManyRows
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.runtime.system.cpu import has_amx, has_vnni, target_cpu

_FEW_ROWS = 4


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
    unit = VectorUnit.of(target_cpu().features)
    one_zero = shape_of(op.zero_points) == (1, 1)
    form = BlockwiseForm(bytes_, op.bits.value.data, unit, one_zero, not has_vnni())
    gemm = _Gemm(form, rows, hint(rows), units, blocks)
    if rows == 0 or not units:
        return [b.empty(output)]
    data = b.reshape(op.data, [rows, width])
    if width != gemm.steps:
        data = b.insert(data, b.filled(0, tensor_of(f32, [rows, gemm.steps])), [0, 0])
    operands = [data, op.codes, op.scales, op.zero_points]
    kinds = _kinds(form) if op.rounds.value.data else _FLOATS
    result = b.emit(_kernel(gemm, kinds, operands, b))
    return [b.reshape(result, type_sizes(output))]


_Kinds: TypeAlias = tuple[type[FewRows], type[ManyRows]]

_FLOATS: _Kinds = (FewRows, ManyRows)
_BYTES: _Kinds = (FewRowsOfBytes, ManyRowsOfBytes)
_MATRICES: _Kinds = (FewRowsOfBytes, ManyRowsByMatrices)


def _kinds(form: BlockwiseForm) -> _Kinds:
    """Returns the kernels for data that may be rounded to bytes."""
    if not takes_bytes(form):
        return _FLOATS
    return _MATRICES if has_amx() else _BYTES


def _kernel(
    gemm: _Gemm, kinds: _Kinds, operands: Sequence[SSAValue], b: LinalgBuilder
) -> host.KernelOp:
    rows, blocks = gemm.rows, gemm.blocks
    results = [tensor_of(f32, [rows, gemm.units])]
    if kinds is not _FLOATS:
        results.append(tensor_of(i8, [rows, gemm.steps]))
        repeated = gemm.few_rows * lanes_of_block(gemm.form)
        kept = repeated if isinstance(rows, int) and gemm.few_rows else rows + repeated
        results += [tensor_of(f32, [kept, blocks])] * 2
    else:
        results.append(tensor_of(f32, [rows + gemm.form.unit.tile_rows, gemm.steps]))
        if gemm.few_rows:
            results.append(TensorType(f32, [gemm.few_rows, blocks, lanes_of_block(gemm.form)]))
    types = tuple(host.buffer_type(type_) for type_ in (*(v.type for v in operands), *results))
    body, functions = _body(gemm, kinds, types)
    for function in functions:
        b.define(function.name, function.function)
    return host.KernelOp("blockwise_dense", operands, results, body.clone())


@lru_cache(maxsize=64)
def _body(
    gemm: _Gemm, kinds: _Kinds, types: tuple[Attribute, ...]
) -> tuple[Region, Sequence[BlockwiseFunction]]:
    """Returns the body of a kernel, to be cloned, and the functions that it calls."""
    few, many = kinds
    block = Block(arg_types=types)
    end = host.YieldOp()
    block.add_op(end)
    writer = _Calls(LoopWriter(block, end), gemm, block.args)
    if isinstance(gemm.rows, int):
        if gemm.few_rows:
            writer.write(few, gemm.rows, gemm.usual_rows)
        else:
            writer.write(many, None, gemm.usual_rows)
    else:
        with writer.code.if_positive(largest(0, _FEW_ROWS + 1 - gemm.rows)):
            writer.write(few, None, 1)
        with writer.code.if_positive(largest(0, gemm.rows - _FEW_ROWS)):
            writer.write(many, None, gemm.usual_rows)
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
        if issubclass(kind, FewRows):
            call(0, 0, gemm.rows)
        else:
            work = usual_rows * gemm.steps
            some = gemm.form.unit.tile_rows
            with code.parallel([gemm.rows], [some], cycles=work) as (row,):
                call(0, row, self._count(gemm.rows, row, some))
        tile, panel = kind.tile_units(gemm.form), gemm.form.unit.panel
        full = gemm.units - gemm.units % tile
        work = usual_rows * gemm.units * gemm.steps / ASSUMED.block_products
        if work >= ASSUMED.parallel_cycles and full > panel:
            with code.parallel([full], [panel], cycles=work) as (first,):
                call(tile, first, self._count(full, first, panel))
        elif full:
            with code.loop(full, step=panel) as loop:
                call(tile, loop.counter, self._count(full, loop.counter, panel))
        if full < gemm.units:
            call(1, full, gemm.units - full)

    def _count(self, full: Size, first: SSAValue, most: int) -> Index:
        left = self.code.add_index(full, self.code.scale_index(first, -1))
        return self.code.minimum(left, most)

    def _call(
        self, kind: type[BlockwiseWriter], rows: int | None, tile: int, first: Index, count: Index
    ) -> None:
        function = BlockwiseFunction(kind, self._gemm.form, rows, tile)
        self.functions[function] = None
        buffers = self._buffers[: len(ELEMENTS) + len(kind.MEMORY)]
        operands = [*buffers, *self._sizes, self.code.index(first), self.code.index(count)]
        self.code.add(func.CallOp(function.name, operands, []))


FUNCTIONS: Lowerings = {relay.BlockwiseDenseOp: _lower_blockwise_dense}
