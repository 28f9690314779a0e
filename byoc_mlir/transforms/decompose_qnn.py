"""The pass `decompose-qnn`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay import RelayOp, elementwise, nn, pool, qnn, qnn_window, window
from byoc_mlir.dialects.relay.base import rank_of, sizes_of, tensor_type
from byoc_mlir.dialects.relay.element_types import integer_range, numpy_dtype
from byoc_mlir.dialects.relay.index import TakeOp
from byoc_mlir.dialects.relay.transform import BroadcastToOp, StridedSliceOp
from byoc_mlir.limits import in_time
from byoc_mlir.transforms.op_sequence import OpSequence
from byoc_mlir.transforms.rewriting import erase_dead_ops, replace_op

Decomposition: TypeAlias = Callable[[Any, OpSequence], SSAValue]


@dataclass(frozen=True)
class DecomposeQnn(ModulePass):
    """Replaces quantised ops by integer and float arithmetic with bit-identical results.

    ```mlir
    %0 = relay.qnn.dequantize %x, %scale, %zero : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> …
    // becomes
    %1 = relay.cast %x {dtype = f32} : …
    %2 = relay.cast %zero {dtype = f32} : …
    %3 = relay.subtract %1, %2 : …
    %0 = relay.multiply %3, %scale : …
    ```

    GEMMs and convolutions become ops on `i32`. `kept` names ops that stay, for lowerings that have
    kernels for them.
    """

    name = "decompose-qnn"

    kept: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in host_blocks(op):
            for candidate in in_time(block.ops):
                decomposition = _DECOMPOSITIONS.get(type(candidate))
                if decomposition is None or candidate.name in self.kept:
                    continue
                new = OpSequence(candidate.location)
                result = decomposition(candidate, new)
                replace_op(candidate, new.ops, [result])
            erase_dead_ops(block)


def _spread(op: qnn.AffineOp, parameter: SSAValue, new: OpSequence) -> SSAValue:
    """Reshapes a scale or zero point so that it broadcasts to the data."""
    shape, block, data = sizes_of(parameter), op.block_size.value.data, sizes_of(op.data)
    if not shape:
        return parameter
    axis = op.positive_axis
    if not block:
        return new.along(parameter, axis, len(data))
    before, blocks, after = shape[:axis], shape[axis], shape[axis + 1 :]
    split = new.reshape(parameter, (*before, blocks, 1, *after))
    repeated = new.add(BroadcastToOp, split, shape=(*before, blocks, block, *after))
    whole = new.reshape(repeated, (*before, blocks * block, *after))
    if blocks * block == data[axis]:
        return whole
    return new.add(StridedSliceOp, whole, begin=[0] * len(data), end=data, strides=[1] * len(data))


def _placed(scaled: SSAValue, zero_point: SSAValue, new: OpSequence) -> SSAValue:
    """Rounds values in units of the result's scale, and saturates them to the zero point's type."""
    dtype = numpy_dtype(tensor_type(zero_point).element_type)
    low, high = integer_range(dtype)
    rounded = new.add(elementwise.RoundOp, scaled)
    shifted = new.shifted(elementwise.AddOp, rounded, zero_point)
    clipped = new.add(elementwise.ClipOp, shifted, a_min=float(low), a_max=float(high))
    return new.cast(clipped, dtype)


def _centred(data: SSAValue, zero_point: SSAValue, new: OpSequence) -> SSAValue:
    return new.shifted(elementwise.SubtractOp, new.cast(data, np.int32), zero_point)


def _real(data: SSAValue, scale: SSAValue, zero_point: SSAValue, new: OpSequence) -> SSAValue:
    """Computes the real values that quantised integers represent."""
    is_wide = numpy_dtype(tensor_type(data).element_type).itemsize > 2
    exact = new.cast(data, np.int32 if is_wide else np.float32)
    centred = new.shifted(elementwise.SubtractOp, exact, zero_point)
    return new.add(elementwise.MultiplyOp, new.cast(centred, np.float32), scale)


def _quantize(op: qnn.QuantizeOp, new: OpSequence) -> SSAValue:
    scaled = new.add(elementwise.DivideOp, op.data, _spread(op, op.scale, new))
    return _placed(scaled, _spread(op, op.zero_point, new), new)


def _dequantize(op: qnn.DequantizeOp, new: OpSequence) -> SSAValue:
    return _real(op.data, _spread(op, op.scale, new), _spread(op, op.zero_point, new), new)


def _requantize(op: qnn.RequantizeOp, new: OpSequence) -> SSAValue:
    ratio = new.add(elementwise.DivideOp, op.input_scale, op.output_scale)
    if sizes_of(ratio):
        ratio = new.along(ratio, op.positive_axis, rank_of(op.data))
    return _placed(_real(op.data, ratio, op.input_zero_point, new), op.output_zero_point, new)


def _dense(op: qnn.DenseOp, new: OpSequence) -> SSAValue:
    data = _centred(op.data, op.data_zero_point, new)
    weight = _centred(op.weight, new.along(op.weight_zero_point, 0, 2), new)
    return new.add(nn.DenseOp, data, weight)


def _matmul(op: qnn.MatmulOp, new: OpSequence) -> SSAValue:
    a, b = _centred(op.a, op.a_zero_point, new), _centred(op.b, op.b_zero_point, new)
    return new.add(nn.MatmulOp, a, b, transpose_a=op.transpose_a, transpose_b=op.transpose_b)


def _convolution(kind: type[RelayOp], output_axis: int) -> Decomposition:
    """Returns the decomposition of a convolution; `output_axis` is the axis of the weight's output
    channels.
    """

    def apply(
        op: qnn_window.QuantizedConvOp | qnn_window.QuantizedConvTransposeOp, new: OpSequence
    ) -> SSAValue:
        zero_points = new.along(op.weight_zero_point, output_axis, rank_of(op.weight))
        data = _centred(op.data, op.data_zero_point, new)
        weight = _centred(op.weight, zero_points, new)
        return new.add(kind, data, weight, **cast(Any, op.properties))

    return apply


def _binary(kind: type[RelayOp]) -> Decomposition:
    def apply(op: qnn.BinaryOp, new: OpSequence) -> SSAValue:
        lhs = _real(op.lhs, op.lhs_scale, op.lhs_zero_point, new)
        rhs = _real(op.rhs, op.rhs_scale, op.rhs_zero_point, new)
        scaled = new.add(elementwise.DivideOp, new.add(kind, lhs, rhs), op.output_scale)
        return _placed(scaled, op.output_zero_point, new)

    return apply


def _pool(kind: type[RelayOp]) -> Decomposition:
    def apply(op: qnn_window.QuantizedPoolOp, new: OpSequence) -> SSAValue:
        centred = new.cast(_centred(op.data, op.input_zero_point, new), np.float32)
        mean = new.add(kind, centred, **cast(Any, op.properties))
        ratio = new.add(elementwise.DivideOp, op.input_scale, op.output_scale)
        scaled = new.add(elementwise.MultiplyOp, mean, ratio)
        return _placed(scaled, op.output_zero_point, new)

    return apply


def _lookup(op: qnn.LookupOp, new: OpSequence) -> SSAValue:
    places = new.cast(new.reinterpret(op.data, np.uint8), np.int32)
    return new.add(TakeOp, op.table, places, axis=0)


_DECOMPOSITIONS: Mapping[type[Any], Decomposition] = {
    qnn.AddOp: _binary(elementwise.AddOp),
    qnn.DenseOp: _dense,
    qnn.DequantizeOp: _dequantize,
    qnn.LookupOp: _lookup,
    qnn.MatmulOp: _matmul,
    qnn.MultiplyOp: _binary(elementwise.MultiplyOp),
    qnn.QuantizeOp: _quantize,
    qnn.RequantizeOp: _requantize,
    **{qnn_window.CONV[n]: _convolution(kind, 0) for n, kind in window.CONV.items()},
    **{
        qnn_window.CONV_TRANSPOSE[n]: _convolution(kind, 1)
        for n, kind in window.CONV_TRANSPOSE.items()
    },
    **{qnn_window.AVG_POOL[n]: _pool(kind) for n, kind in pool.AVG_POOL.items()},
    **{qnn_window.GLOBAL_AVG_POOL[n]: _pool(kind) for n, kind in pool.GLOBAL_AVG_POOL.items()},
}
