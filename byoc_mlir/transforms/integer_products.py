"""Rules of `fake-quantization-to-integer` for convolutions, GEMMs, and biases after them.

A rule gets an op and the sequence of ops that may replace it. It returns one of these:

- the integers of the result, or of each result if there are several;
- why the op stays although its operands are quantised;
- `None` for an op without quantised operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.relay import RelayOp, elementwise, nn, qnn, qnn_window, window
from byoc_mlir.dialects.relay.base import normalize_axis, rank_of, sizes_of
from byoc_mlir.dialects.relay.element_types import NARROW_INTEGERS, numpy_dtype
from byoc_mlir.dialects.relay.transform import TransposeOp
from byoc_mlir.transforms.op_sequence import OpSequence
from byoc_mlir.transforms.quantised import (
    BYTES,
    Quantised,
    is_zero,
    quantised,
    same_value,
    scale_product,
)
from byoc_mlir.transforms.rewriting import constant_array

Answer: TypeAlias = "Quantised | Sequence[Quantised] | str | None"
Rule: TypeAlias = Callable[[Any, OpSequence], Answer]

_UP_TO_BYTES = tuple(numpy_dtype(each) for each in NARROW_INTEGERS if each.width.data <= 8)
_SAME_SCALE = 1e-4
"""Maximum relative difference of a bias's scale from the product of the operands' scales."""
_UNITS_IN_A_STEP = 32
"""Minimum ratio of the result's scale to the accumulators' scale for which a float bias may be
rounded to the accumulators' scale."""
_LARGEST_BIAS = 2.0**30
"""Maximum bias, in accumulator units, for which sums stay in the range of `i32`."""


def _unfit(data: Quantised, weight: Quantised, axis: int) -> str | None:
    """Returns why two quantised operands have no integer product, or `None` if they have one.

    The weight may have per-axis parameters along `axis`.
    """
    if data.dtype not in BYTES:
        return f"its data is of {data.dtype}, integer units take int8 and uint8"
    if not data.is_whole:
        return "its data has parameters along an axis, accepted is one for the whole tensor"
    if weight.dtype not in _UP_TO_BYTES:
        return f"its weight is of {weight.dtype}, integer units take at most 8 bits"
    if not weight.is_whole and weight.axis != axis:
        return f"its weight has parameters along axis {weight.axis}, accepted is axis {axis}"
    return None


def _as_bytes(weight: Quantised, new: OpSequence) -> Quantised:
    """Casts the weight to elements of 8 bits."""
    dtype = np.uint8 if weight.dtype.name.startswith("u") else np.int8
    return Quantised(
        new.cast(weight.data, dtype), weight.scale, new.cast(weight.zero_point, dtype), weight.axis
    )


def _accumulators(
    kind: type[RelayOp],
    data: Quantised,
    weight: Quantised,
    new: OpSequence,
    channels: int,
    **properties: Any,
) -> Quantised:
    """Returns the integer sums of a GEMM or convolution; a vector of scales lies along the axis
    `channels`.
    """
    total = new.add(kind, data.data, weight.data, data.zero_point, weight.zero_point, **properties)
    scale = scale_product(data.scale, weight.scale, new)
    zero = new.constant("zero", np.zeros((), np.int32))
    return Quantised(total, scale, zero, normalize_axis(channels, rank_of(total)))


def _convolution(kind: type[RelayOp], axis: int) -> Rule:
    """Returns the rule of a convolution whose weight has its output channels along `axis`."""

    def apply(op: window.ConvOp | window.ConvTransposeOp, new: OpSequence) -> Answer:
        data, weight = quantised(op.data), quantised(op.weight)
        if data is None or weight is None:
            return None
        reason = _unfit(data, weight, axis)
        if reason is None and axis and not weight.is_whole and op.groups.value.data != 1:
            reason = "its weight has parameters along an axis of the channels of several groups"
        if reason is not None:
            return reason
        weight = _as_bytes(weight, new)
        return _accumulators(kind, data, weight, new, 1, **cast(Any, op.properties))

    return apply


def _dense(op: nn.DenseOp, new: OpSequence) -> Answer:
    data, weight = quantised(op.data), quantised(op.weight)
    if data is None or weight is None:
        return None
    reason = _unfit(data, weight, 0)
    if reason is not None:
        return reason
    return _accumulators(qnn.DenseOp, data, _as_bytes(weight, new), new, -1)


def _matmul(op: nn.MatmulOp, new: OpSequence) -> Answer:
    """Converts a matmul; a matmul with a constant matrix becomes a dense layer."""
    data, weight = quantised(op.a), quantised(op.b)
    if data is None or weight is None:
        return None
    turned_a, turned_b = bool(op.transpose_a.value.data), bool(op.transpose_b.value.data)
    columns = weight.rank - (2 if turned_b else 1)
    reason = _unfit(data, weight, columns)
    if reason is not None:
        return reason
    weight = _as_bytes(weight, new)
    if weight.rank == 2 and constant_array(weight.data) is not None and not turned_a:
        matrix = weight.data if turned_b else new.add(TransposeOp, weight.data, axes=[1, 0])
        units = Quantised(matrix, weight.scale, weight.zero_point)
        return _accumulators(qnn.DenseOp, data, units, new, -1)
    spread = Quantised(
        weight.data, weight.scale, new.along(weight.zero_point, columns, weight.rank)
    )
    return _accumulators(
        qnn.MatmulOp, data, spread, new, -1, transpose_a=turned_a, transpose_b=turned_b
    )


def _bias(op: nn.BiasAddOp, new: OpSequence) -> Answer:
    return _with_bias(op.data, op.bias, op.positive_axis, op.output, new)


def _sum(op: elementwise.AddOp, new: OpSequence) -> Answer:
    """Converts an addition of accumulators and a bias vector along the last axis."""
    for data, bias in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if rank_of(bias) == 1 and rank_of(data) > 1:
            return _with_bias(data, bias, rank_of(data) - 1, op.output, new)
    return None


def _with_bias(
    data: SSAValue, vector: SSAValue, axis: int, result: SSAValue, new: OpSequence
) -> Answer:
    """Adds a bias to accumulators, if it has their quantisation parameters or can be requantised to
    them.

    Args:
        result: the sum in the model.
    """
    total = quantised(data)
    if total is None or total.dtype != np.int32 or not is_zero(total.zero_point):
        return None
    bias = quantised(vector) or _fine_bias(total, vector, axis, result, new)
    if bias is None or bias.dtype != np.int32:
        return None
    scales = constant_array(total.scale), constant_array(bias.scale)
    if not same_value(total.scale, bias.scale) and (
        scales[0] is None
        or scales[1] is None
        or not np.allclose(scales[1], scales[0], rtol=_SAME_SCALE, atol=0)
    ):
        return "its bias has another scale than the product of its operands"
    if sizes_of(bias.data) != (sizes_of(total.data)[axis],) or not is_zero(bias.zero_point):
        return "its bias is not one value for each channel, with zero point 0"
    biased = new.add(nn.BiasAddOp, total.data, bias.data, axis=axis)
    return Quantised(biased, total.scale, total.zero_point, total.axis)


def _fine_bias(
    total: Quantised, vector: SSAValue, axis: int, result: SSAValue, new: OpSequence
) -> Quantised | None:
    """Quantises a constant float bias with the accumulators' scale.

    Returns `None` unless `result` is quantised with a scale so much larger that this rounding does
    not matter.
    """
    scale, numbers, step = constant_array(total.scale), constant_array(vector), _step(result)
    channels = (sizes_of(total.data)[axis],)
    if scale is None or numbers is None or step is None or numbers.shape != channels:
        return None
    units = numbers.astype(np.float64) / scale
    if scale.max() * _UNITS_IN_A_STEP > step or not (np.abs(units) < _LARGEST_BIAS).all():
        return None
    integers = new.constant("bias", np.rint(units).astype(np.int32))
    return Quantised(integers, total.scale, total.zero_point, 0)


def _step(value: SSAValue) -> float | None:
    """Returns the scale with which a value is quantised, perhaps after relus and clips; `None` if
    it is not.
    """
    while value.has_one_use():
        use = next(iter(value.uses)).operation
        if isinstance(use, qnn.QuantizeOp):
            scale = constant_array(use.scale)
            return float(scale) if scale is not None and scale.ndim == 0 else None
        if not isinstance(use, elementwise.ClipOp | nn.ReluOp):
            return None
        value = use.output
    return None


def _scaled_accumulators(op: elementwise.MultiplyOp, new: OpSequence) -> Answer:
    """Recognises accumulators that are cast to float and scaled, as in models with dynamic
    quantisation.
    """
    for cast_value, scale in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        before = cast_value.owner
        if not isinstance(before, elementwise.CastOp) or not _is_product(before.data):
            continue
        shape, rank = sizes_of(scale), rank_of(before.data)
        size = sizes_of(before.data)[-1]
        if op.output.type != cast_value.type or before.dtype != f32:
            continue
        zero = new.constant("zero", np.zeros((), np.int32))
        if all(each == 1 for each in shape):
            return Quantised(before.data, new.reshape(scale, ()), zero)
        if shape[-1] == size and all(each == 1 for each in shape[:-1]):
            return Quantised(before.data, new.reshape(scale, (size,)), zero, rank - 1)
    return None


def _is_product(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and value.owner.name in PRODUCTS


_CONVOLUTIONS: dict[type[RelayOp], tuple[type[RelayOp], int]] = {
    **{kind: (qnn_window.CONV[n], 0) for n, kind in window.CONV.items()},
    **{kind: (qnn_window.CONV_TRANSPOSE[n], 1) for n, kind in window.CONV_TRANSPOSE.items()},
}
PRODUCTS = frozenset(
    [qnn.DenseOp.name, qnn.MatmulOp.name, *(kind.name for kind, _ in _CONVOLUTIONS.values())]
)
"""Names of the ops that return accumulators."""

RULES: dict[type[RelayOp], Rule] = {
    **{float_: _convolution(kind, axis) for float_, (kind, axis) in _CONVOLUTIONS.items()},
    nn.BiasAddOp: _bias,
    nn.DenseOp: _dense,
    nn.MatmulOp: _matmul,
    elementwise.AddOp: _sum,
    elementwise.MultiplyOp: _scaled_accumulators,
}
