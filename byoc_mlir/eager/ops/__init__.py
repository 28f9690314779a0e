"""Ops that run faster than those of ONNX's reference evaluator, in its form."""

from __future__ import annotations

from onnx.reference.op_run import OpRun

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

OPS: tuple[type[OpRun], ...] = (
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
