"""Decision to keep an `f32` matmul or convolution unsplit, instead of three `bf16` ones with
AMX.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import bf16
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.costs.costs import Costs
from byoc_mlir.backends.dnnl.partition.trial import region_of
from byoc_mlir.backends.dnnl.passes.convert_relay_to_dnnl import convert_region
from byoc_mlir.backends.dnnl.primitives.descriptions import LayoutOf
from byoc_mlir.backends.dnnl.primitives.layout_choices import plain_layout, ways
from byoc_mlir.backends.dnnl.profitability.mixed import best_cost
from byoc_mlir.backends.dnnl.profitability.regions import reading_weights
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import shape_of, tensor_of
from byoc_mlir.kernels.costs import ASSUMED, ConvolutionCalibration, calibration
from byoc_mlir.onednn.engine import openmp_threads

_SPLIT_BYTES = 10
"""Bytes of an `f32` element that is read, and written as three parts."""


def faster_whole(op: Operation, choices: Choices) -> str | None:
    """Returns why a `relay` op or composite of `f32` is slower in `bf16x3`, or hardly faster.

    Returns `None` for other ops. The times are for one thread. They include the memory traffic of
    the splitting, and of the weights, which grow by half. Weights are split at compile time.
    """
    region = region_of(op)
    convert_region(region)
    products = (dnnl.ConvolutionOp, dnnl.MatmulOp)
    found = [one for one in region.body.block.ops if isinstance(one, products)]
    if len(found) != 1:
        return "it is not one matmul or convolution"
    (product,) = found
    with openmp_threads(1):
        cost, moved = best_cost(product, choices), _split_bytes(product)
        whole = max(cost.milliseconds, reading_weights(product))  # the host reads meanwhile
        _lengthen(product)
        split = _split_milliseconds(product, Costs(choices))
        split += moved / calibration(ConvolutionCalibration).transformed_bytes
    if split < ASSUMED.place_margin * whole:
        return None
    return (
        f"{cost.algorithm or 'it'} takes {whole:.3g} ms, {split:.3g} in bf16x3 with what splitting"
        " takes"
    )


def _split_milliseconds(product: dnnl.ConvolutionOp | dnnl.MatmulOp, costs: Costs) -> float:
    """Returns the milliseconds of the split matmul or convolution, with reorders.

    The host writes the parts row-major, and reads the result row-major to split it for the next op.
    """
    computed = min(
        costs.best(product, layout).milliseconds + _reorders(product, layout, costs)
        for layout in ways(product)
    )
    return computed + reading_weights(product)


def _reorders(product: dnnl.ConvolutionOp | dnnl.MatmulOp, layout: LayoutOf, costs: Costs) -> float:
    source, result = product.primary[0], product.output
    if isinstance(product, dnnl.MatmulOp):
        return 0.0
    return costs.reorder(source, plain_layout(source), layout(source)) + costs.reorder(
        result, layout(result), plain_layout(result)
    )


def _split_bytes(product: dnnl.ConvolutionOp | dnnl.MatmulOp) -> int:
    operands = (one for one in product.primary[:2] if not isinstance(one.owner, ConstantOp))
    return sum(_SPLIT_BYTES * math.prod(shape_of(one)) for one in operands)


def _lengthen(product: dnnl.ConvolutionOp | dnnl.MatmulOp) -> None:
    """Changes the operands to `bf16`, with three times the extent along the reduced axis."""
    data, weights = product.primary[:2]
    if isinstance(product, dnnl.ConvolutionOp):
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
