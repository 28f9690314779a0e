"""Convolutions whose weights sum to nearly zero, so that rounding changes the sum considerably."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import bf16
from xdsl.ir import BlockArgument, Operation

from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.window import ConvOp
from byoc_mlir.transforms.rewriting import constant_array

_KEPT = 1 / 64
"""Maximum relative change of a sum of weights by rounding."""


def why_not_rounded(op: Operation, product: Operation) -> str | None:
    """Returns why a convolution's weights must not be rounded to `bf16`, or `None` if they may be.

    On constant data, such as the background of a page of text, a convolution computes the sum of
    its weights. For an edge detector this sum is close to zero, so that rounding errors exceed it.

    Args:
        op: op of the block: the convolution itself, or a composite that contains it.
        product: the convolution; for a matmul, the result is `None`.
    """
    if not isinstance(product, ConvOp):
        return None
    weight = product.operands[1]
    if isinstance(weight, BlockArgument) and product is not op:
        weight = op.operands[weight.index]
    exact = constant_array(weight)
    if exact is None:
        return None
    sums, rounded = (
        array.reshape(len(array), -1).sum(axis=1, dtype=np.float64)
        for array in (exact, exact.astype(numpy_dtype(bf16)))
    )
    moved = int(np.count_nonzero(np.abs(rounded - sums) > _KEPT * np.abs(sums)))
    if 2 * moved <= len(sums):
        return None
    return f"rounded weights would give other sums in {moved} of {len(sums)} channels"
