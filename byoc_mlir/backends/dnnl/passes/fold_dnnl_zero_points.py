"""The pass `fold-dnnl-zero-points`: adds zero points to the bias."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.dialect.quantized import is_ours
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass, replace_constant
from byoc_mlir.dialects.relay.base import ints
from byoc_mlir.dialects.relay.constant import known_array
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.limits import in_time

Product: TypeAlias = dnnl.QuantizedConvolutionOp | dnnl.QuantizedMatmulOp

_BIAS, _SOURCE_ZERO_POINT, _ZERO_POINT = 2, 4, 5
"""Operand indices of both ops."""

_LARGEST = 2.0**14
"""Maximum addend of a bias: `f32` has a 24-bit significand, so ten bits remain for the fraction."""


class FoldDnnlZeroPoints(RegionPass):
    """Adds constant zero points to the bias, because oneDNN's code for zero points of 0 is the
    fastest.

    The pass always folds the result's zero point, and adjusts the limits. It folds the source's
    zero point only if there is no padding, by subtracting its product with the sum of the weights.
    With padding, the padded elements would have to equal the source's zero point, but a primitive
    without zero point pads with 0.

    ```mlir
    %1 = dnnl.quantized_convolution %x, %w, %b, %s, %c5, %c7 {post_ops = [#dnnl.eltwise<relu>], …}
    ```
    becomes
    ```mlir
    %1 = dnnl.quantized_convolution %x, %w, %c, %s, %c0, %c0
        {post_ops = [#dnnl.eltwise<clip, 7.0, 255.0>], …}
    ```
    """

    name = "fold-dnnl-zero-points"

    def change(self, region: FuncOp) -> None:
        for op in in_time(region.body.block.ops):
            if isinstance(op, Product) and _may_round(op):
                _fold_source(op)
                _fold_result(op)


def _may_round(op: Product) -> bool:
    """True if a zero point may be rounded in the bias.

    Not so for built-in kernels, which sum integers, and for `f32` results of oneDNN, where the
    error would be visible.
    """
    return op.element != f32 and not is_ours(op)


def _fold_source(op: Product) -> None:
    zero_point = _number(op.arguments[_SOURCE_ZERO_POINT])
    known = [known_array(op.arguments[index]) for index in (1, _BIAS, 3)]
    if not zero_point or any(one is None for one in known) or _is_padded(op):
        return
    weights, bias, scales = (one for one in known if one is not None)
    sums = weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int64)
    part = zero_point * sums * scales.astype(np.float64)
    if np.abs(part).max(initial=0) <= _LARGEST:
        replace_constant(op, _BIAS, (bias - part.reshape(bias.shape)).astype(np.float32))
        replace_constant(op, _SOURCE_ZERO_POINT, np.zeros(1, np.int32))


def _fold_result(op: Product) -> None:
    zero_point, bias = _number(op.arguments[_ZERO_POINT]), known_array(op.arguments[_BIAS])
    if not zero_point or bias is None or op.post_op_operands:
        return
    replace_constant(op, _BIAS, bias + np.float32(zero_point))
    replace_constant(op, _ZERO_POINT, np.zeros(1, np.int32))
    highest = float(np.iinfo(numpy_dtype(op.element)).max)
    moved = [_moved(one, zero_point, highest) for one in op.post_ops]
    op.properties["post_ops"] = ArrayAttr(moved)


def _moved(limits: Attribute, zero_point: int, highest: float) -> Attribute:
    """Returns the limits for values to which the zero point is already added."""
    assert isinstance(limits, dnnl.EltwiseAttr)
    if limits.algorithm.data == "relu":
        return dnnl.EltwiseAttr.of("clip", float(zero_point), highest)
    low, high = limits.alpha.value.data, limits.beta.value.data
    return dnnl.EltwiseAttr.of("clip", low + zero_point, high + zero_point)


def _is_padded(op: Product) -> bool:
    return isinstance(op, dnnl.QuantizedConvolutionOp) and any(ints(op.padding))


def _number(value: SSAValue) -> int:
    """Returns a constant zero point, or 0 if it is not constant."""
    array = known_array(value)
    return 0 if array is None else int(array[0])
