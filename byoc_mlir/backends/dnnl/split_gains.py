"""Which products of `f32` take longer in three products of `bf16`, on a processor with AMX."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import bf16
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from byoc_mlir.backends.dnnl.api import openmp_threads
from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.dialect import ConvolutionOp, MatmulOp
from byoc_mlir.backends.dnnl.mixed_gains import best_cost
from byoc_mlir.backends.dnnl.passes.convert_relay_to_dnnl import convert_region
from byoc_mlir.backends.dnnl.trial import region_of
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import shape_of, tensor_of
from byoc_mlir.kernels.costs import ConvolutionRates, rates

_SPLIT_BYTES = 22
"""Those of an element of `f32` that is read and written as three parts, which are read and written
again in the layout of the product."""


def faster_whole(op: Operation, choices: Choices) -> str | None:
    """Why a `relay` op or composite of `f32` takes longer in `bf16x3`: by the times of one thread,
    and the bytes that splitting moves. Weights are split at compile time."""
    region = region_of(op)
    convert_region(region)
    products = (ConvolutionOp, MatmulOp)
    found = [one for one in region.body.block.ops if isinstance(one, products)]
    if len(found) != 1:
        return "it is not one product"
    (product,) = found
    with openmp_threads(1):
        whole, moved = best_cost(product, choices), _split_bytes(product)
        _lengthen(product)
        split = (
            best_cost(product, choices).milliseconds
            + moved / rates(ConvolutionRates).transformed_bytes
        )
    if whole.milliseconds > split:
        return None
    return (
        f"{whole.algorithm or 'it'} takes {whole.milliseconds:.3g} ms, {split:.3g} in bf16x3 with"
        " what splitting takes"
    )


def _split_bytes(product: ConvolutionOp | MatmulOp) -> int:
    operands = (one for one in product.primary[:2] if not isinstance(one.owner, ConstantOp))
    return sum(_SPLIT_BYTES * math.prod(shape_of(one)) for one in operands)


def _lengthen(product: ConvolutionOp | MatmulOp) -> None:
    """Makes the operands three times as long along what is summed, and of `bf16`."""
    data, weights = product.primary[:2]
    if isinstance(product, ConvolutionOp):
        axes = (1, 1)
    else:
        last = len(shape_of(data)) - 1
        axes = (
            last - bool(product.transpose_a.value.data),
            last - (not product.transpose_b.value.data),
        )
    for value, axis in zip((data, weights), axes, strict=True):
        _retype(value, axis)


def _retype(value: SSAValue, axis: int) -> None:
    shape = list(shape_of(value))
    shape[axis] *= 3
    Rewriter.replace_value_with_new_type(value, tensor_of(bf16, shape))
