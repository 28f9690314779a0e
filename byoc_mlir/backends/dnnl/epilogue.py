"""What our own convolutions do with a result on its way to memory."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl.descriptions import LayoutOf
from byoc_mlir.backends.dnnl.dialect import BinaryAttr, ConvolutionOp, EltwiseAttr, SumAttr
from byoc_mlir.dialects.relay.base import shape_of

Limits = Literal["none", "relu", "clip"]
"""None, a lower one of 0, or any."""


@dataclass(frozen=True)
class Epilogue:
    """The sum with a residual, then limits."""

    residual: SSAValue | None = None
    lower: float = -math.inf
    upper: float = math.inf

    @property
    def limits(self) -> Limits:
        """What kind of limits there are."""
        if (self.lower, self.upper) == (-math.inf, math.inf):
            return "none"
        return "relu" if (self.lower, self.upper) == (0.0, math.inf) else "clip"

    @property
    def words(self) -> list[int]:
        """The bits of both limits in `f32`."""
        bounds = (self.lower, self.upper)
        return [struct.unpack("<I", struct.pack("<f", bound))[0] for bound in bounds]


def epilogue(op: ConvolutionOp, layout: LayoutOf) -> Epilogue | None:
    """What the post-ops of a convolution ask for; `None` where it is something else."""
    chain = list(op.post_ops)
    residual = None
    if chain and _is_sum(op, chain[0], layout):
        residual = op.post_op_operands[0]
        chain = chain[1:]
    limits = _limits(chain)
    return None if limits is None else Epilogue(residual, *limits)


def _is_sum(op: ConvolutionOp, post_op: Attribute, layout: LayoutOf) -> bool:
    if isinstance(post_op, SumAttr):
        return True
    if not isinstance(post_op, BinaryAttr) or post_op.algorithm.data != "add":
        return False
    operand = op.post_op_operands[0]
    return shape_of(operand) == shape_of(op.output) and layout(operand) == layout(op.output)


def _limits(chain: Sequence[Attribute]) -> tuple[float, float] | None:
    if not chain:
        return -math.inf, math.inf
    if len(chain) > 1 or not isinstance(chain[0], EltwiseAttr):
        return None
    alpha, beta = chain[0].alpha.value.data, chain[0].beta.value.data
    if chain[0].algorithm.data == "relu" and alpha == 0:
        return 0.0, math.inf
    if chain[0].algorithm.data in ("clip", "clip_v2"):
        return alpha, beta
    return None
