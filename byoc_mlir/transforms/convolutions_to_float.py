"""The pass `convolutions-to-float`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay import RelayOp, elementwise, qnn_window, window
from byoc_mlir.dialects.relay.base import ints, rank_of, shape_of, sizes_of, tensor_type
from byoc_mlir.dialects.relay.element_types import ui8
from byoc_mlir.dialects.relay.nn import BiasAddOp
from byoc_mlir.dialects.relay.qnn import DequantizeOp, RequantizeOp
from byoc_mlir.limits import in_time
from byoc_mlir.runtime.system.cpu import has_vnni
from byoc_mlir.tensors import Array
from byoc_mlir.transforms.op_sequence import OpSequence
from byoc_mlir.transforms.rewriting import constant_array, replace_op

_HARMLESS = 64
"""Maximum magnitude of weights for which two products of a byte and a weight fit in 16 bits, so
that processors without VNNI multiply bytes fast."""

_OF_FLOATS: Mapping[type[RelayOp], type[RelayOp]] = {
    kind: window.CONV[n] for n, kind in qnn_window.CONV.items()
}

_ROUNDING = (DequantizeOp, RequantizeOp)


@dataclass(frozen=True)
class ConvolutionsToFloat(ModulePass):
    """Converts int8 convolutions to `f32` where `f32` is faster.

    This is so on processors without VNNI, for windows of 3 x 3 pixels with strides of 1: in `f32`,
    Winograd's algorithm has fewer MACs than an int8 GEMM of `i16` pairs. The pass does not convert
    other windows, dilated or grouped convolutions, and `ui8` data with weights up to 64. It
    converts depthwise convolutions of `i8` data, since int8 instructions need halved weights for
    them, if they apply at all. An `f32` sum may be off by a few units. So the pass converts only
    convolutions whose sums are scaled and rounded afterwards.

    Options:
        vnni: true if the processor has VNNI; the default is this processor.

    ```mlir
    %0 = relay.qnn.conv2d %x, %w, %x_zero, %w_zero {…} : … -> tensor<1x8x4x4xi32>
    // becomes
    %1 = relay.cast %x {dtype = f32} : …
    %2 = relay.subtract %1, %zero : …
    %3 = relay.nn.conv2d %2, %weights {…} : … -> tensor<1x8x4x4xf32>
    %4 = relay.round %3 : …
    %0 = relay.cast %4 {dtype = i32} : …
    ```
    """

    name = "convolutions-to-float"

    vnni: bool | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_vnni() if self.vnni is None else self.vnni:
            return
        for block in host_blocks(op):
            for candidate in in_time(block.ops):
                if isinstance(candidate, qnn_window.QuantizedConvOp):
                    _convert(candidate)


def _convert(op: qnn_window.QuantizedConvOp) -> None:
    weights = _weights(op)
    if weights is None or not _has_faster_algorithm(op) or _is_harmless(op, weights):
        return
    if not _is_rounded(op.output):
        return
    new = OpSequence(op.location)
    data = new.cast(op.data, np.float32)
    centred = new.shifted(elementwise.SubtractOp, data, op.data_zero_point)
    kernel = new.constant("weights", weights.astype(np.float32))
    sums = new.add(_OF_FLOATS[type(op)], centred, kernel, **cast(Any, op.properties))
    replace_op(op, new.ops, [new.cast(new.add(elementwise.RoundOp, sums), np.int32)])


def _weights(op: qnn_window.QuantizedConvOp) -> Array | None:
    """Returns the weights minus their zero points, or `None` if they are not constant."""
    weights, zeros = constant_array(op.weight), constant_array(op.weight_zero_point)
    if weights is None or zeros is None:
        return None
    along = (-1, *(1,) * (rank_of(op.weight) - 1))
    return weights.astype(np.int32) - zeros.astype(np.int32).reshape(along if zeros.ndim else ())


def _has_faster_algorithm(op: qnn_window.QuantizedConvOp) -> bool:
    """True if `f32` may need fewer MACs or fewer instructions."""
    groups, (outputs, _, *window) = op.groups.value.data, shape_of(op.weight)
    if groups == 1:
        return window == [3, 3] and {*ints(op.strides), *ints(op.dilation)} == {1}
    return groups == sizes_of(op.data)[1] == outputs and not _is_unsigned(op)


def _is_harmless(op: qnn_window.QuantizedConvOp, weights: Array) -> bool:
    return _is_unsigned(op) and bool(np.abs(weights).max(initial=0) <= _HARMLESS)


def _is_unsigned(op: qnn_window.QuantizedConvOp) -> bool:
    return tensor_type(op.data).element_type == ui8


def _is_rounded(sums: SSAValue) -> bool:
    """True if all users round the sums or convert them to `f32`, perhaps after an addition."""
    return all(_rounds(cast(RelayOp, use.operation)) for use in sums.uses)


def _rounds(op: RelayOp) -> bool:
    if isinstance(op, BiasAddOp | elementwise.AddOp):
        return _is_rounded(op.results[0])
    return isinstance(op, _ROUNDING) or (isinstance(op, elementwise.CastOp) and op.dtype == f32)
