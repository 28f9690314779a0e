"""Matmuls of a region, in the form of calls of OpenBLAS."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from byoc_mlir.backends.gemm import Gemm, bias_refused, gemm_of, gemm_refused
from byoc_mlir.backends.region import only_f32
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay.nn import BiasAddOp, DenseOp, MatmulOp

ROW_MAJOR, AS_STORED, TRANSPOSED = 101, 111, 112
"""`CBLAS_ORDER` and `CBLAS_TRANSPOSE`."""

BLOCK = "openblas.block"
"""Attribute of a matmul that is split into blocks, `"48x96x128"`. A constant B that is stored
transposed is packed into panels for it, `[units / 96, depth, 96]`.
"""


@dataclass(frozen=True)
class Block:
    """Size of one call, `[rows, depth] · [depth, units]`, which may accumulate into its result."""

    rows: int
    units: int
    depth: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.units}x{self.depth}"

    @staticmethod
    def of(text: str) -> Block:
        """Parses a block such as `48x96x128`.

        Raises:
            ValueError: the text has another form.
        """
        if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*){2}", text):
            raise ValueError(f"a block is {text!r}, accepted are three sizes such as '48x96x128'")
        rows, units, depth = map(int, text.split("x"))
        return Block(rows, units, depth)

    def within(self, whole: Block) -> Block:
        """Returns the block, clipped to the size of another one."""
        sizes = zip(
            (self.rows, self.units, self.depth),
            (whole.rows, whole.units, whole.depth),
            strict=True,
        )
        return Block(*(min(pair) for pair in sizes))


@dataclass(frozen=True)
class BatchedGemm(Gemm):
    """Batch of matmuls, and how OpenBLAS computes it."""

    has_bias: bool = False
    """True if a third operand holds a bias for each unit."""
    block: Block | None = None
    """Block size of the matmul; `None` for one call."""
    has_panels: bool = False
    """True if operand B is packed into panels as wide as the blocks, the last one padded."""

    @property
    def grain(self) -> int:
        """Returns the number of rows, or of units if there are more, of which each piece takes a
        multiple.
        """
        return self.block.units if self.block and self.has_panels and not self.is_tall else 1

    @property
    def is_tall(self) -> bool:
        """True if there are at least as many rows as units."""
        return self.rows >= self.units

    @property
    def is_vector(self) -> bool:
        """True if each result is one row, so that B is read once."""
        return self.rows == 1


def product_of(op: Operation) -> BatchedGemm:
    """Returns the matmul of an op that `refused` accepts, or of a composite of a dense layer and a
    bias.
    """
    inner = multiplying_op(op)
    text = inner.attributes.get(BLOCK)
    block = Block.of(text.data) if isinstance(text, StringAttr) else None
    return BatchedGemm(**vars(gemm_of(inner)), has_bias=inner is not op, block=block)


def multiplying_op(op: Operation) -> DenseOp | MatmulOp:
    """Returns the matmul of a composite, or the op itself."""
    inner = next(iter(op.ops())) if isinstance(op, CompositeOp) else op
    assert isinstance(inner, DenseOp | MatmulOp)
    return inner


def biased_refused(op: Operation) -> str | None:
    """Accepts a float32 bias of the units."""
    assert isinstance(op, BiasAddOp)
    return bias_refused(op) or only_f32(op)


def refused(op: Operation) -> str | None:
    """Accepts float32 matmuls whose batches are of equal length or one matrix long."""
    return gemm_refused(op) or only_f32(op)
