"""Conversions that built-in kernels do instead of oneDNN's reorders."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import bf16, f32

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.primitives.descriptions import LayoutOf
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.kernels.convolution import KernelCode
from byoc_mlir.kernels.interleave import interleave_code


def interleaving(op: dnnl.ConvertOp, layout: LayoutOf) -> KernelCode | None:
    """Returns the kernel that converts `f32` NCHW to `bf16` NHWC, or `None` for another op."""
    rank = len(shape_of(op.output))
    types = (tensor_type(op.source).element_type, op.element)
    wanted = (layouts.plain(rank), layouts.channels_last(rank)) if rank > 2 else ()
    if types != (f32, bf16) or (layout(op.source), layout(op.output)) != wanted:
        return None
    images, channels, *pixels = shape_of(op.output)
    return interleave_code(images, channels, math.prod(pixels))
