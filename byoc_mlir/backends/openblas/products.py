"""Matrix products of a region as calls of OpenBLAS see them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from byoc_mlir.backends.region import only_f32
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.nn import BiasAddOp, DenseOp, MatmulOp

ROW_MAJOR, AS_STORED, TRANSPOSED = 101, 111, 112
"""`CBLAS_ORDER` and `CBLAS_TRANSPOSE`."""

BLOCK = "openblas.block"
"""The attribute of a product that is cut into blocks, `"48x96x128"`. A constant that is stored
transposed is put in panels for it, `[units / 96, depth, 96]`."""


@dataclass(frozen=True)
class Block:
    """What one call computes, or adds to: `[rows, depth] · [depth, units]`."""

    rows: int
    units: int
    depth: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.units}x{self.depth}"

    @staticmethod
    def of(text: str) -> Block:
        """From its text.

        Raises:
            ValueError: it is another text.
        """
        if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*){2}", text):
            raise ValueError(f"a block is {text!r}, accepted are three sizes such as '48x96x128'")
        rows, units, depth = map(int, text.split("x"))
        return Block(rows, units, depth)

    def within(self, whole: Block) -> Block:
        """The block, no larger than another one."""
        sizes = zip(
            (self.rows, self.units, self.depth),
            (whole.rows, whole.units, whole.depth),
            strict=True,
        )
        return Block(*(min(pair) for pair in sizes))


@dataclass(frozen=True)
class BatchedGemm:
    """`count` products `[rows, depth] · [depth, units]` of row-major matrices, one after another
    in memory; an operand that all of them share is there once.
    """

    count: int
    rows: int
    units: int
    depth: int
    transposes: tuple[bool, bool]
    """Whether an operand is stored with its dimensions swapped."""
    shares: tuple[bool, bool]
    """Whether all products read the same operand."""
    has_bias: bool = False
    """Whether a number for each unit is added, a third operand."""
    block: Block | None = None
    """What it is cut into; `None`: one call."""
    has_panels: bool = False
    """Whether the second operand is in panels as wide as the blocks, the last one filled up."""

    @property
    def grain(self) -> int:
        """Rows, or units where there are more of these, of which whole multiples are computed."""
        return self.block.units if self.block and self.has_panels and not self.is_tall else 1

    @property
    def is_tall(self) -> bool:
        """Whether there are no fewer rows than units."""
        return self.rows >= self.units

    @property
    def is_vector(self) -> bool:
        """Whether each result is one row, so that the second matrix is read once."""
        return self.rows == 1


def product_of(op: Operation) -> BatchedGemm:
    """What an op that `refused` accepts computes, or a composite of a dense layer and its bias."""
    inner = multiplying_op(op)
    product, text = _of_shapes(inner), inner.attributes.get(BLOCK)
    block = Block.of(text.data) if isinstance(text, StringAttr) else None
    return replace(product, has_bias=inner is not op, block=block)


def multiplying_op(op: Operation) -> DenseOp | MatmulOp:
    """An op, or the one in a composite, that is the product."""
    inner = next(iter(op.ops())) if isinstance(op, CompositeOp) else op
    assert isinstance(inner, DenseOp | MatmulOp)
    return inner


def _of_shapes(op: DenseOp | MatmulOp) -> BatchedGemm:
    *batch, rows, units = (1, 1, *shape_of(op.output))
    if isinstance(op, DenseOp):
        depth = shape_of(op.weight)[1]
        return BatchedGemm(1, math.prod(batch) * rows, units, depth, (False, True), (False, False))
    transposes = (bool(op.transpose_a.value.data), bool(op.transpose_b.value.data))
    depth = shape_of(op.a)[-2 if transposes[0] else -1]
    count = math.prod(batch)
    matrices = [math.prod(shape_of(value)[:-2]) for value in op.operands]
    if matrices[1] == 1 and not transposes[0]:  # rows of all the matrices follow each other
        return BatchedGemm(1, count * rows, units, depth, transposes, (False, False))
    shares = (matrices[0] < count, matrices[1] < count)
    return BatchedGemm(count, rows, units, depth, transposes, shares)


def bias_refused(op: Operation) -> str | None:
    """A rule: a bias of the units."""
    assert isinstance(op, BiasAddOp)
    if op.positive_axis != len(shape_of(op.data)) - 1:
        return "only a bias of the last axis is supported"
    return only_f32(op)


def refused(op: Operation) -> str | None:
    """A rule: products of float32 whose stacks are as long as each other, or one matrix long."""
    if 0 in (size for value in (*op.operands, *op.results) for size in shape_of(value)):
        return "a tensor is empty"
    if isinstance(op, MatmulOp):
        stacks = math.prod(shape_of(op.output)[:-2])
        for value in op.operands:
            if math.prod(shape_of(value)[:-2]) not in (1, stacks):
                return f"{value.type} would have to be broadcast in some of its dimensions"
    return only_f32(op)
