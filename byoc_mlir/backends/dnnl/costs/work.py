"""Work of a described primitive: the MACs or bytes that its time grows with."""

from __future__ import annotations

import math

from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive
from byoc_mlir.onednn.constants import Arg


def unfolds_windows(described: DescribedPrimitive, implementation: str) -> bool:
    """True if a convolution of one group unfolds its windows into a larger GEMM.

    Such an implementation is never the fastest.
    """
    if "conv" not in described.call.kind or "gemm" not in implementation:
        return False
    result = described.operands[-1].descriptor.dims
    weights = [one.descriptor.dims for one in described.operands if one.argument == Arg.WEIGHTS]
    return any(len(dims) == len(result) and math.prod(dims[2:]) > 1 for dims in weights)


def has_weights(described: DescribedPrimitive) -> bool:
    """True if a primitive reads weights."""
    return any(operand.argument == Arg.WEIGHTS for operand in described.operands)


def work_of(described: DescribedPrimitive) -> float:
    """Returns the MACs of a primitive with weights, or the bytes that another primitive moves."""
    result = described.operands[-1].descriptor.dims
    weights = {one.argument: math.prod(one.descriptor.dims) for one in described.operands}
    if Arg.WEIGHTS_1 in weights:  # a recurrent layer: each step multiplies by all of both
        steps, batch, _ = result
        return float(steps * batch * (weights[Arg.WEIGHTS] + weights[Arg.WEIGHTS_1]))
    if Arg.WEIGHTS in weights:
        outputs = math.prod(result) / result[1 if len(result) > 2 else -1]
        return outputs * weights[Arg.WEIGHTS]
    return float(sum(operand.descriptor.byte_size for operand in described.operands))
