"""Ops that run faster than those of ONNX's reference evaluator, in its form."""

from __future__ import annotations

from onnx.reference.op_run import OpRun

from byoc_mlir.eager.ops import (
    activation,
    detection,
    elementwise,
    index,
    normalization,
    rearrange,
    recurrent,
    reduction,
)

OPS: tuple[type[OpRun], ...] = (
    *activation.OPS,
    *detection.OPS,
    *elementwise.OPS,
    *index.OPS,
    *normalization.OPS,
    *rearrange.OPS,
    *recurrent.OPS,
    *reduction.OPS,
)
