"""Sizes and accesses of loop nests, read off `linalg.generic` ops."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects.builtin import AffineMapAttr, MemRefType, f32
from xdsl.dialects.linalg.ops import GenericOp, YieldOp
from xdsl.dialects.memref import AllocOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.lowering.linalg_to_loops.nest import nest_of, plain_nest, split_loop
from byoc_mlir.lowering.linalg_to_loops.simple import cycles_of
from byoc_mlir.lowering.relay_to_linalg.builder import PARALLEL, REDUCTION

N, H, K, C = (AffineExpr.dimension(position) for position in range(4))
Operand = tuple[Sequence[int], Sequence[AffineExpr]]


def _generic(kinds: str, inputs: Sequence[Operand], output: Operand) -> GenericOp:
    """Returns an op that copies its first input; `kinds` has one letter for each loop, `p` or
    `r`."""
    operands = [*inputs, output]
    types = [MemRefType(f32, shape) for shape, _ in operands]
    values: Sequence[SSAValue] = [AllocOp([], [], type_).memref for type_ in types]
    block = Block(arg_types=[f32] * len(operands))
    block.add_op(YieldOp(block.args[0]))
    iterators = {"p": PARALLEL, "r": REDUCTION}
    return GenericOp(
        values[:-1],
        values[-1:],
        Region(block),
        [AffineMapAttr(AffineMap(len(kinds), 0, tuple(exprs))) for _, exprs in operands],
        [iterators[kind] for kind in kinds],
    )


def test_every_operand_tells_sizes() -> None:
    """Checks a loop that only the last operand names, after an operand that names fewer loops."""
    window: list[Operand] = [((5, 11, 1), (N, H * 2 + K, AffineExpr.constant(0))), ((), ())]
    nest = plain_nest(_generic("pprp", [*window, ((3, 7), (K, C))], ((5, 5, 7), (N, H, C))))
    assert nest.sizes == (5, 5, 3, 7)
    assert nest.reductions == {2}
    assert [access.coefficients for access in nest.accesses] == [
        (11, 2, 1, 0),
        (0, 0, 0, 0),
        (0, 0, 7, 1),
        (35, 7, 0, 1),
    ]


def test_a_loop_that_no_operand_names_is_refused() -> None:
    op = _generic("ppr", [((5, 11), (N, H * 2 + K))], ((5, 5), (N, H)))
    with pytest.raises(PassFailedException, match="size of loop 2"):
        plain_nest(op)


def test_a_split_loop_walks_through_the_same_elements() -> None:
    nest = plain_nest(_generic("prp", [((12, 5), (N, H)), ((5, 7), (H, K))], ((12, 7), (N, K))))
    split = split_loop(nest, 0, 4)
    assert split.sizes == (3, 4, 5, 7)
    assert split.reductions == {2}
    assert [access.coefficients for access in split.accesses] == [
        (20, 5, 1, 0),
        (0, 0, 7, 1),
        (28, 7, 0, 1),
    ]


def test_a_reduction_walks_along_memory() -> None:
    """Checks an NHWC image whose loops name the channels first."""
    image: Operand = ((5, 7, 3), (K, C, H))
    whole = nest_of(_generic("prrr", [image], ((4,), (N,))))
    assert (whole.sizes, whole.accesses[0].coefficients) == ((4, 105), (0, 1))
    squares = nest_of(_generic("prrr", [image, image], ((4,), (N,))))
    assert squares.sizes == (4, 105)
    two = nest_of(_generic("prrr", [image, ((3, 5, 7), (H, K, C))], ((4,), (N,))))
    assert two.sizes == (4, 3, 35)


def test_what_is_moved_takes_time() -> None:
    """Checks the estimate: each element counts once, also in overlapping windows."""
    copy = plain_nest(_generic("pp", [((600, 400), (N, H))], ((400, 600), (H, N))))
    assert cycles_of(copy) == 2 * 4 * 600 * 400 / 8
    window = plain_nest(_generic("pr", [((1003,), (N + H,)), ((4,), (H,))], ((1000,), (N,))))
    assert cycles_of(window) == 4 * (1003 + 4 + 1000) / 8


def test_rows_find_in_a_cache_what_was_written() -> None:
    copy = plain_nest(_generic("pp", [((600, 400), (N, H))], ((600, 400), (N, H))))
    row = plain_nest(_generic("pp", [((400,), (H,))], ((600, 400), (N, H))))
    assert cycles_of(copy, row) == cycles_of(copy) > cycles_of(row)
