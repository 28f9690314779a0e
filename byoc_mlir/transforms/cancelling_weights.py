"""Convolutions whose weights cancel: rounding them does not leave what is left of them."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import bf16
from xdsl.ir import BlockArgument, Operation

from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.window import ConvOp
from byoc_mlir.transforms.rewriting import constant_array

_KEPT = 1 / 64
"""How much of a sum of weights rounding may move."""


def why_not_rounded(op: Operation, product: Operation) -> str | None:
    """Why the weights of a product in an op, itself or a composite, shall not be rounded to `bf16`.

    On even data, which pictures of text mostly are, a convolution gives the sum of its weights. An
    edge detector's is close to zero: of such a sum little more is left than the errors of rounding.
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
