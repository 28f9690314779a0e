"""Contractions: the `linalg` ops that are GEMMs or convolutions, with the ops that follow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import AffineMapAttr, Float32Type, Float64Type, FloatAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from byoc_mlir.dialects.relay.base import sizes_of
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Dim, Size
from byoc_mlir.lowering.linalg_to_loops.nest import (
    Access,
    Nest,
    coalesced,
    plain_nest,
    without_unit_loops,
)

FEWEST_ROWS = 3
"""Minimum number of rows: with fewer, a GEMM is a few dot products, and packing does not pay."""

FEWEST_STEPS = 4

_MOST_LINES = 32
"""Maximum number of rows: with more, packing `b` is faster than two loads for three MACs."""

FEWEST_LINE_STEPS = 128
"""Minimum number of steps: with fewer, summing the lanes of a vector takes as long as the MACs."""


@dataclass(frozen=True)
class ElementwiseEpilogue:
    """Element-wise op that updates the contraction's result in place, with the positions of its
    accesses in the nest.
    """

    body: Block
    accesses: tuple[int, ...]
    """Positions of the inputs' accesses, then of the output's."""


@dataclass(frozen=True)
class Contraction:
    """`c[row, column] += sum over steps of a[row, step] * b[step, column]`, for all `outer`
    loops.

    Accesses 0, 1 and 2 of the nest are a, b and c; the epilogues' accesses follow. The columns are
    one or two loops, along which `c` is contiguous.
    """

    nest: Nest
    outer: tuple[int, ...]
    row: int | None
    columns: tuple[int, ...]
    steps: tuple[int, ...]
    fresh: bool
    """True if the result starts at zero, and not with its current values."""
    epilogues: tuple[ElementwiseEpilogue, ...]

    @property
    def panel_columns(self) -> int:
        """Returns the number of columns of the panels in which `b` is stored, or 0 if it is not in
        panels.
        """
        return self.nest.accesses[1].panel_columns

    @property
    def is_of_lines(self) -> bool:
        """True if the rows of `a` and the columns of `b` are contiguous along the steps.

        There must be few rows, and enough steps for vectors.
        """
        nest, steps = self.nest, self.steps
        if len(steps) != 1 or len(self.columns) != 1 or self.panel_columns:
            return False
        if any(access.coefficients[steps[0]] != 1 for access in nest.accesses[:2]):
            return False
        return hint(self.rows) <= _MOST_LINES and hint(nest.sizes[steps[0]]) >= FEWEST_LINE_STEPS

    @property
    def rows(self) -> Size:
        """Returns the number of rows."""
        return 1 if self.row is None else self.nest.sizes[self.row]


def fill_value(op: linalg.GenericOp) -> Attribute | None:
    """Returns the constant that a fill writes everywhere; None for other ops."""
    end = op.body.block.last_op
    if op.inputs or len(op.outputs) != 1 or end is None:
        return None
    owner = end.operands[0].owner
    return owner.value if isinstance(owner, arith.ConstantOp) else None


def is_zero_fill(op: linalg.GenericOp) -> bool:
    """True if an op writes zero everywhere."""
    value = fill_value(op)
    return isinstance(value, FloatAttr) and value.value.data == 0


def loop_sizes(op: linalg.GenericOp) -> list[Size]:
    """Returns the trip counts of the loops of an op on tensors."""
    sizes: list[Size] = [1] * op.indexing_maps.data[0].data.num_dims
    for operand, map_ in zip(op.operands, op.indexing_maps, strict=True):
        for size, expr in zip(sizes_of(operand), map_.data.results, strict=True):
            if isinstance(expr, AffineDimExpr):
                sizes[expr.position] = size
    return sizes


def is_product_sum(op: linalg.GenericOp) -> bool:
    """True if the body is `c + a * b` on f32 or f64."""
    block = op.body.block
    inner = list(block.ops)
    if len(inner) != 3 or len(block.args) != 3:
        return False
    product, total, end = inner
    return (
        isinstance(product, arith.MulfOp)
        and isinstance(total, arith.AddfOp)
        and isinstance(product.result.type, Float32Type | Float64Type)
        and tuple(product.operands) == tuple(block.args[:2])
        and tuple(total.operands) == (block.args[2], product.result)
        and end.operands[0] is total.result
    )


def is_in_place(op: linalg.GenericOp, buffer: SSAValue) -> bool:
    """True if an op computes each element of `buffer` from the element's old value and other
    inputs.
    """
    if len(op.outputs) != 1 or op.outputs[0] is not buffer or buffer not in op.inputs:
        return False
    if any(isinstance(inner, linalg.IndexOp) for inner in op.body.block.ops):
        return False
    rank = op.indexing_maps.data[-1].data.num_dims
    identity = AffineMapAttr(AffineMap.identity(rank))
    operands = zip(op.operands, op.indexing_maps, strict=True)
    return all(map_ == identity for value, map_ in operands if value is buffer)


def contraction_of(
    op: linalg.GenericOp, fresh: bool, followers: Sequence[linalg.GenericOp]
) -> Contraction | None:
    """Returns the contraction that `op` and the in-place ops after it compute.

    None if `op` is no contraction, or too small.
    """
    result_map = op.indexing_maps.data[2].data
    loops = [expr.position for expr in result_map.results if isinstance(expr, AffineDimExpr)]
    if len(loops) != len(result_map.results):
        return None
    nest = plain_nest(op)
    if nest.iterations == 0:
        return None
    epilogues: list[ElementwiseEpilogue] = []
    for follower in followers:
        added = _in_loops(plain_nest(follower), loops, len(nest.sizes))
        first = len(nest.accesses)
        nest = replace(nest, accesses=(*nest.accesses, *added))
        epilogues.append(
            ElementwiseEpilogue(follower.body.block, tuple(range(first, first + len(added))))
        )
    return _classified(coalesced(without_unit_loops(nest)), fresh, tuple(epilogues))


def _in_loops(nest: Nest, loops: Sequence[int], rank: int) -> list[Access]:
    """Returns the accesses of an epilogue, expressed in the contraction's loops."""
    moved: list[Access] = []
    for access in nest.accesses:
        coefficients: list[Size] = [0] * rank
        for loop, coefficient in zip(loops, access.coefficients, strict=True):
            coefficients[loop] = coefficient
        moved.append(replace(access, coefficients=tuple(coefficients)))
    return moved


def _classified(
    nest: Nest, fresh: bool, epilogues: tuple[ElementwiseEpilogue, ...]
) -> Contraction | None:
    c = nest.accesses[2].coefficients
    vector = next((loop for loop in nest.parallel if c[loop] == 1), None)
    if vector is None:
        return None
    if nest.accesses[0].coefficients[vector] != 0:
        nest = replace(nest, accesses=(nest.accesses[1], nest.accesses[0], *nest.accesses[2:]))
    a, b = nest.accesses[0].coefficients, nest.accesses[1].coefficients
    if a[vector] != 0 or b[vector] == 0:
        return None
    above = [u for u in nest.parallel if a[u] == 0 and b[u] != 0 and c[u] == nest.sizes[vector]]
    columns = (*above[:1], vector)
    rows = [u for u in nest.parallel if a[u] != 0 and b[u] == 0]
    row = max(rows, key=lambda u: hint(nest.sizes[u]), default=None)
    contraction = Contraction(
        nest,
        tuple(u for u in nest.parallel if u not in (*columns, row)),
        row,
        columns,
        tuple(sorted(nest.reductions)),
        fresh,
        epilogues,
    )
    return contraction if _is_worthwhile(contraction) and _walks_evenly(contraction) else None


def _is_worthwhile(contraction: Contraction) -> bool:
    nest = contraction.nest
    if contraction.panel_columns or contraction.is_of_lines:
        return True  # no other loops read panels, or contiguous steps as fast
    steps = prod(nest.sizes[loop] for loop in contraction.steps)
    return _may_reach(contraction.rows, FEWEST_ROWS) and _may_reach(steps, FEWEST_STEPS)


def _may_reach(size: Size, least: int) -> bool:
    """True if a size is at least `least`, or is symbolic and may be."""
    return isinstance(size, Dim) or size >= least


def _walks_evenly(contraction: Contraction) -> bool:
    """True if the step loops of `a` could be one loop, and likewise the column loops of all but
    `b`.

    That is, each access has the same stride from the end of an inner loop to the next outer
    iteration.
    """
    nest = contraction.nest

    def evenly(access: Access, loops: Sequence[int]) -> bool:
        coefficients, sizes = access.coefficients, nest.sizes
        return all(
            coefficients[outer] == coefficients[inner] * sizes[inner]
            for outer, inner in pairwise(loops)
        )

    others = (nest.accesses[0], *nest.accesses[2:])
    return evenly(nest.accesses[0], contraction.steps) and all(
        evenly(access, contraction.columns) for access in others
    )
