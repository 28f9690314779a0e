"""The pass `pack-weights`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, FixedBitwidthType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import sizes_of
from byoc_mlir.dialects.relay.constant import Array, derived_array
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.linalg_to_loops.contraction import (
    FEWEST_LINE_STEPS,
    FEWEST_ROWS,
    FEWEST_STEPS,
    is_product_sum,
)
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import tile_columns
from byoc_mlir.lowering.linalg_to_loops.nest import panel_exprs
from byoc_mlir.tensors import aligned_empty, transposed


@dataclass(frozen=True)
class PackWeights(ModulePass):
    """Packs constant matrices in the order in which the GEMM micro-kernels read them.

    `[steps, columns]`, or its transpose, becomes panels `[columns / c, steps, c]`, where `c` is a
    tile's number of columns; the last panel is padded with zeros. The indexing map describes the
    new positions of elements. Packing pays even for one row of data: the kernel reads panel after
    panel, with sums in registers. A matrix narrower than a tile is only transposed, and stays as it
    is for one or two rows. A transposed matrix in memory that the caller owns is not copied: it is
    read in place, or transposed block by block.

    Options:
        vector_bits: width of the target's vector registers in bits.

    ```mlir
    %w = relay.constant #relay.weight<…> : tensor<64x40xf32>
    linalg.generic {indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (k, n), …]} ins(%x, %w) …
    // becomes
    %p = relay.constant #relay.weight<…> : tensor<3x64x16xf32>
    linalg.generic {indexing_maps = [
        (m, n, k) -> (m, k), (m, n, k) -> (n floordiv 16, k, n mod 16), …]} ins(%x, %p) …
    ```
    """

    name = "pack-weights"

    vector_bits: int = 256

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with asking_of(op):
            for block in host_blocks(op):
                for inner in in_time(block.ops):
                    if isinstance(inner, linalg.GenericOp) and is_product_sum(inner):
                        self._pack(inner)

    def _pack(self, op: linalg.GenericOp) -> None:
        weight = op.inputs[1].owner
        loops = _matrix_loops(op)
        if not isinstance(weight, ConstantOp) or loops is None:
            return
        step, column = loops
        is_transposed = op.indexing_maps.data[1].data.results[0] == column
        matrix = weight.array.T if is_transposed else weight.array
        if matrix.shape[0] < FEWEST_STEPS:
            return
        if is_transposed and weight.is_borrowed and matrix.shape[0] >= FEWEST_LINE_STEPS:
            return
        element = weight.type.element_type
        assert isinstance(element, FixedBitwidthType)
        columns = tile_columns(element, self.vector_bits)
        if matrix.shape[1] >= columns:
            how = ("panels", columns, is_transposed)
            packed = derived_array(how, [weight.array], lambda: panels(matrix, columns))
            _replace(op, weight, packed, panel_exprs(step, column, columns))
        elif is_transposed and hint(prod(sizes_of(op.results[0])[:-1])) >= FEWEST_ROWS:
            turned = derived_array("turned", [weight.array], lambda: transposed(weight.array))
            _replace(op, weight, turned, (step, column))


def _replace(
    op: linalg.GenericOp, weight: ConstantOp, array: Array, exprs: Sequence[AffineExpr]
) -> None:
    """Changes `op` to read the elements of `weight` from `array`."""
    packed = ConstantOp.of("packed_weight", array)
    packed.location = weight.location
    Rewriter.insert_op(packed, InsertPoint.before(op))
    op.operands[1] = packed.output
    data, _, result = op.indexing_maps
    map_ = AffineMap(result.data.num_dims, 0, tuple(exprs))
    op.properties["indexing_maps"] = ArrayAttr([data, AffineMapAttr(map_), result])
    weight.erase_if_unused()


def _matrix_loops(op: linalg.GenericOp) -> tuple[AffineDimExpr, AffineDimExpr] | None:
    """Returns the loops over the rows (K) and the columns (N) of the second input.

    None unless that input is a matrix whose rows are the only reduction, and whose columns are the
    result's.
    """
    data, weight, result = (attribute.data for attribute in op.indexing_maps)
    steps = [
        AffineDimExpr(loop)
        for loop, kind in enumerate(op.iterator_types)
        if kind.data is IteratorType.REDUCTION
    ]
    column = result.results[-1] if result.results else None
    if len(steps) != 1 or not isinstance(column, AffineDimExpr):
        return None
    if len(weight.results) != 2 or set(weight.results) != {steps[0], column}:
        return None
    if any(column.position in expr.used_dims() for expr in data.results):
        return None
    return steps[0], column


def panels(matrix: Array, columns: int) -> Array:
    """Packs `[K, N]` into panels `[ceil(N / columns), K, columns]`, padded with zeros.

    No other array of the matrix's size is allocated, since weights may fill most of the memory.
    """
    steps, width = matrix.shape
    found = aligned_empty((-(-width // columns), steps, columns), matrix.dtype)
    for number, panel in enumerate(found):
        some = matrix[:, number * columns : (number + 1) * columns]
        panel[:, : some.shape[1]] = some
        panel[:, some.shape[1] :] = 0
    return found
