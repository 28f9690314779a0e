"""The ops that are run node by node, one file a kind."""

from __future__ import annotations

from collections.abc import Mapping

from byoc_mlir.eager.ops import (
    activation,
    convolution,
    detection,
    elementwise,
    index,
    matrix,
    normalization,
    pool,
    rearrange,
    recurrent,
    reduction,
)
from byoc_mlir.eager.ops.op import Op

_CLASSES: tuple[type[Op], ...] = (
    *activation.OPS,
    *convolution.OPS,
    *detection.OPS,
    *elementwise.OPS,
    *index.OPS,
    *matrix.OPS,
    *normalization.OPS,
    *pool.OPS,
    *rearrange.OPS,
    *recurrent.OPS,
    *reduction.OPS,
)

OPS: Mapping[str, type[Op]] = {op.__name__: op for op in _CLASSES}
"""By their names in ONNX's default domain."""
