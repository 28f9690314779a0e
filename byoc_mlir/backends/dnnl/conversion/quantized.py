"""Conversion of quantised convolutions, matmuls and sums to `dnnl` ops."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, i32
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.conversion.builder import Builder
from byoc_mlir.backends.dnnl.conversion.matrix import rows
from byoc_mlir.backends.dnnl.conversion.quantized_chains import (
    Quantized,
    QuantizedConvolution,
    QuantizedProduct,
    QuantizedSum,
)
from byoc_mlir.backends.dnnl.partition.saturation import saturates
from byoc_mlir.dialects.relay import ConstantOp, qnn
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.evaluate import evaluate_op
from byoc_mlir.kernels.integer_gemm import NAME


def quantized(builder: Builder, found: Quantized) -> SSAValue:
    """Builds the `dnnl` op for a matched quantised convolution, matmul or sum."""
    if isinstance(found, QuantizedSum):
        return _sum(builder, found)
    if isinstance(found, QuantizedProduct):
        return _product(builder, found)
    return _convolution(builder, found)


def lookup(builder: Builder, op: qnn.LookupOp) -> SSAValue:
    """Builds `dnnl.lookup`."""
    return builder.add(dnnl.LookupOp(builder.value(op.data), builder.value(op.table)))


def requantized(builder: Builder, op: qnn.RequantizeOp) -> SSAValue:
    """Builds `dnnl.lookup` with a table of the 256 results; all parameters are constants."""
    dtype = numpy_dtype(tensor_type(op.data).element_type)
    parameters = [builder.reader.array(value) for value in op.operands[1:]]
    every = np.arange(256, dtype=np.uint8).view(dtype)
    (table,) = evaluate_op(op, [every, *(one for one in parameters if one is not None)])
    return builder.add(
        dnnl.LookupOp(builder.value(op.data), builder.add(ConstantOp.of("table", table)))
    )


def _product(builder: Builder, found: QuantizedProduct) -> SSAValue:
    op, zero_point = found.op, found.zero_point
    weights = builder.add(ConstantOp.of("weights", found.weights))
    bias = builder.add(ConstantOp.of("bias", found.bias.reshape(1, -1)))
    post_ops = [] if zero_point is None else _limits(found.limits, found.element, zero_point)
    product = builder.add(
        dnnl.QuantizedMatmulOp(
            [
                builder.view(builder.value(op.data), rows(shape_of(op.data))),
                *(weights, bias, _scales(builder, found), _zero_point(builder, op)),
                *([] if zero_point is None else [_number(builder, zero_point)]),
            ],
            element=found.element,
            post_ops=ArrayAttr(post_ops),
        )
    )
    return builder.view(product, shape_of(op.output))


def _scales(builder: Builder, found: QuantizedProduct) -> SSAValue:
    if isinstance(found.scales, SSAValue):
        scales = builder.value(found.scales)
        return builder.view(scales, (math.prod(shape_of(scales)),))
    return builder.add(ConstantOp.of("scales", found.scales))


def _zero_point(builder: Builder, op: qnn.DenseOp) -> SSAValue:
    """Returns the zero point of the data as `i32`.

    It is converted at run time if it is not constant.
    """
    known = builder.reader.array(op.data_zero_point)
    if known is not None:
        return _number(builder, int(known))
    given = builder.view(builder.value(op.data_zero_point), (1,))
    return builder.add(dnnl.ConvertOp(given, element=i32))


def _number(builder: Builder, value: int) -> SSAValue:
    return builder.add(ConstantOp.of("zero_point", np.array([value], np.int32)))


def _convolution(builder: Builder, found: QuantizedConvolution) -> SSAValue:
    op = found.op
    constants = [
        builder.add(ConstantOp.of(name, array))
        for name, array in (
            ("weights", found.weights),
            ("bias", found.bias.astype(np.float32) * found.scales),
            ("scales", found.scales),
            ("source_zero_point", np.array([found.data_zero_point], np.int32)),
            ("zero_point", np.array([found.zero_point], np.int32)),
        )
    ]
    residual = found.residual
    added = [] if residual is None else [builder.value(residual.value)]
    after: list[Attribute] = []
    if residual is not None:
        linear = dnnl.EltwiseAttr.of("linear", residual.factor, residual.shift)
        after += [dnnl.EltwiseAttr.of("clip", *residual.limits), dnnl.BinaryAttr.of("add"), linear]
    return builder.add(
        dnnl.QuantizedConvolutionOp(
            [builder.value(found.data), *constants, *added],
            strides=list(ints(op.strides)),
            padding=list(ints(op.padding)),
            dilation=list(ints(op.dilation)),
            groups=op.groups.value.data,
            post_ops=ArrayAttr([*after, *_limits(found.limits, found.element, found.zero_point)]),
            element=found.element,
            algorithm=NAME if saturates(found) else "direct",
        )
    )


def _sum(builder: Builder, found: QuantizedSum) -> SSAValue:
    scales = [
        builder.add(ConstantOp.of("scale", np.array([scale], np.float32))) for scale in found.scales
    ]
    shift = [dnnl.EltwiseAttr.of("linear", 1.0, found.shift)] if found.shift else []
    limits = _limits(found.limits, found.element, 0)
    return builder.add(
        dnnl.QuantizedAddOp(
            [builder.value(found.op.lhs), builder.value(found.op.rhs), *scales],
            post_ops=ArrayAttr([*shift, *limits]),
            element=found.element,
        )
    )


def _limits(
    limits: tuple[float, float] | None, element: Attribute, zero_point: int
) -> list[Attribute]:
    """Returns a result's limits as a post-op, which applies before the zero point is added.

    Returns no post-op if the limits are the type's range.
    """
    if limits is None:
        return []
    range_ = np.iinfo(numpy_dtype(element))
    low, high = max(limits[0], range_.min), min(limits[1], range_.max)
    if (low, high) == (range_.min, range_.max):
        return []
    if low == zero_point and high == range_.max:
        return [dnnl.EltwiseAttr.of("relu")]
    return [dnnl.EltwiseAttr.of("clip", float(low - zero_point), float(high - zero_point))]
