"""Ops that run faster than those of ONNX's reference evaluator, in its form."""

from __future__ import annotations

from onnx.reference.op_run import OpRun

from byoc_mlir.eager.ops import convolution, matrix, pool

OPS: tuple[type[OpRun], ...] = (
    *convolution.OPS,
    *matrix.OPS,
    *pool.OPS,
)
