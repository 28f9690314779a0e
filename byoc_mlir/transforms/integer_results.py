"""Rules of `fake-quantization-to-integer` for ops whose result is quantised.

A rule gets the op before a `qnn.quantize`, the quantisation parameters, and the sequence of ops
that may replace the `qnn.quantize`. It returns one of these: the integers, the reason why they must
be computed from floats, or `None` if no operand is quantised.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import RelayOp, elementwise, logic, nn, pool, qnn, qnn_window
from byoc_mlir.dialects.relay.base import relay_name, sizes_of, tensor_type
from byoc_mlir.dialects.relay.element_types import integer_range, numpy_dtype
from byoc_mlir.dialects.relay.evaluate import evaluate_op
from byoc_mlir.dialects.relay.reduce import MeanOp
from byoc_mlir.dialects.relay.transform import ConcatenateOp
from byoc_mlir.tensors import Array
from byoc_mlir.transforms.op_sequence import OpSequence
from byoc_mlir.transforms.quantised import BYTES, Quantised, placed, quantised, same_value
from byoc_mlir.transforms.rewriting import clip_bounds, constant_array

Integers: TypeAlias = "SSAValue | str | None"
Rule: TypeAlias = "Callable[[Any, ResultParameters, OpSequence], Integers]"


@dataclass(frozen=True)
class ResultParameters:
    """Quantisation parameters of a result, for the whole tensor."""

    scale: SSAValue
    zero_point: SSAValue

    def is_of(self, integers: Quantised) -> bool:
        """True if integers have these parameters already."""
        return (
            integers.is_whole
            and same_value(integers.scale, self.scale)
            and same_value(integers.zero_point, self.zero_point)
        )

    @property
    def known(self) -> tuple[Array | None, Array | None]:
        """Returns scale and zero point, or `None` for each one that is not a constant."""
        return constant_array(self.scale), constant_array(self.zero_point)

    @property
    def is_bytes(self) -> bool:
        """True if the integers have 8 bits."""
        return numpy_dtype(tensor_type(self.zero_point).element_type) in BYTES


def integers_of(op: qnn.QuantizeOp, new: OpSequence) -> Integers:
    """Computes the integers of a `qnn.quantize` directly from quantised operands.

    Returns the reason as text if that is not possible, or `None` if no operand is quantised.
    """
    target = ResultParameters(op.scale, op.zero_point)
    if sizes_of(op.scale) or sizes_of(op.zero_point) or not target.is_bytes:
        return None
    bounds, source = _without_clips(op.data)
    before = source.owner
    if not isinstance(before, RelayOp):
        return None
    rule = _RULES.get(type(before))
    found = rule(before, target, new) if rule else None
    if isinstance(found, SSAValue):
        return _clipped(found, bounds, target, new)
    found = found or _table(op.data, target, new)
    if found is None and _is_of_integers(before):
        return f"{relay_name(before)} of these operands has no integer form"
    return found


def _is_of_integers(op: RelayOp) -> bool:
    """True if all operands are quantised or constant, and at least one is quantised."""
    found = [quantised(value) for value in op.operands]
    known = [constant_array(value) for value in op.operands]
    return any(found) and all(
        integers is not None or array is not None
        for integers, array in zip(found, known, strict=True)
    )


def _without_clips(value: SSAValue) -> tuple[tuple[float, float], SSAValue]:
    """Returns the bounds that relus and clips impose on a value, and the operand of the first relu
    or clip.
    """
    low, high = -math.inf, math.inf
    while isinstance(op := value.owner, elementwise.ClipOp | nn.ReluOp):
        low, high = (min(max(bound, low), high) for bound in clip_bounds(op))
        value = op.data
    return (low, high), value


def _clipped(
    integers: SSAValue, bounds: tuple[float, float], target: ResultParameters, new: OpSequence
) -> Integers:
    """Clips integers to the quantised bounds; this is exact, since rounding is monotonic."""
    if bounds == (-math.inf, math.inf):
        return integers
    scale, zero_point = target.known
    if scale is None or zero_point is None:
        return "it is clipped, by bounds that are computed at run time as integers"
    low, high = placed(np.array(bounds, np.float32), scale, zero_point).tolist()
    if (low, high) == integer_range(zero_point.dtype):
        return integers
    return new.add(elementwise.ClipOp, integers, a_min=float(low), a_max=float(high))


def _requantised(op: qnn.DequantizeOp, target: ResultParameters, new: OpSequence) -> Integers:
    integers = quantised(op.output)
    if integers is None or sizes_of(integers.zero_point):
        return None
    if integers.is_bytes and target.is_of(integers):
        return integers.data
    if integers.dtype not in (*BYTES, np.dtype(np.int32)):
        return None
    return _in_units_of(target, integers, new)


def _in_units_of(target: ResultParameters, integers: Quantised, new: OpSequence) -> SSAValue:
    if target.is_of(integers):
        return integers.data
    return new.add(
        qnn.RequantizeOp,
        integers.data,
        integers.scale,
        integers.zero_point,
        target.scale,
        target.zero_point,
        axis=integers.axis,
    )


def _binary(kind: type[qnn.BinaryOp]) -> Rule:
    def apply(op: elementwise.BroadcastOp, target: ResultParameters, new: OpSequence) -> Integers:
        lhs, rhs = quantised(op.lhs), quantised(op.rhs)
        if lhs is None or rhs is None or not (lhs.is_bytes and rhs.is_bytes):
            return None
        return _table(op.output, target, new) or new.add(
            kind,
            *(lhs.data, rhs.data, lhs.scale, lhs.zero_point, rhs.scale, rhs.zero_point),
            *(target.scale, target.zero_point),
        )

    return apply


def _pool(kind: type[RelayOp]) -> Rule:
    def apply(
        op: pool.AvgPoolOp | pool.GlobalPoolOp, target: ResultParameters, new: OpSequence
    ) -> Integers:
        integers = quantised(op.data)
        if integers is None or not integers.is_bytes:
            return None
        return _pooled(kind, integers, target, new, **op.properties)

    return apply


def _pooled(
    kind: type[RelayOp],
    data: Quantised,
    target: ResultParameters,
    new: OpSequence,
    **properties: Any,
) -> SSAValue:
    parameters = (data.scale, data.zero_point, target.scale, target.zero_point)
    return new.add(kind, data.data, *parameters, **properties)


def _mean(op: MeanOp, target: ResultParameters, new: OpSequence) -> Integers:
    """Converts the mean over all spatial dimensions to a global average pool."""
    integers = quantised(op.data)
    if integers is None or not integers.is_bytes:
        return None
    kind = qnn_window.GLOBAL_AVG_POOL.get(integers.rank - 2)
    if kind is None or op.axes != tuple(range(2, integers.rank)):
        return None
    pooled = _pooled(kind, integers, target, new)
    return new.reshape(pooled, sizes_of(op.output))


def _concatenated(op: ConcatenateOp, target: ResultParameters, new: OpSequence) -> Integers:
    """Requantises every part to the parameters of the result, and concatenates the parts."""
    parts = [quantised(value) for value in op.data]
    known = [part for part in parts if part is not None and part.is_bytes]
    if len(known) < len(parts):
        return None
    return new.add(ConcatenateOp, [_in_units_of(target, part, new) for part in known], axis=op.axis)


def _table(value: SSAValue, target: ResultParameters, new: OpSequence) -> SSAValue | None:
    """Converts a function of one byte to a lookup in a table of its 256 results; `None` for other
    functions.
    """
    scale, zero_point = target.known
    if scale is None or zero_point is None:
        return None
    found = _function_of_one_byte(value)
    if found is None:
        return None
    byte, values, ops = found
    with np.errstate(all="ignore"):
        for op in ops:
            operands = [_operand(each, values) for each in op.operands]
            values[op.results[0]] = evaluate_op(op, operands)[0]
    results = np.broadcast_to(_operand(value, values), (256,))
    table = new.constant("table", placed(results, scale, zero_point))
    return new.add(qnn.LookupOp, byte, table)


def _operand(value: SSAValue, values: dict[SSAValue, Array]) -> Array:
    if value in values:
        return values[value]
    known = constant_array(value)
    assert known is not None
    return known.reshape(())


_MOST_OPS = 32
"""Maximum number of ops of a function that is tabulated."""


def _function_of_one_byte(
    value: SSAValue,
) -> tuple[SSAValue, dict[SSAValue, Array], list[RelayOp]] | None:
    """Returns the function of one byte that computes a value, or `None`.

    It is the byte, the values of each input of the function for the 256 bytes, in the order of
    their bits, and the element-wise ops of the function, in order. If a lookup produced the byte,
    the lookup is part of the function, and the byte is the lookup's operand.
    """
    bytes_: list[SSAValue] = []
    numbers: dict[SSAValue, Array] = {}
    ops: dict[RelayOp, None] = {}

    def visit(each: SSAValue) -> bool:
        known, op = constant_array(each), each.owner
        if quantised(each) is not None:
            found = _numbers(each)
            if found is None:
                return False
            byte, numbers[each] = found
            bytes_.append(byte)
            return byte is bytes_[0] and sizes_of(each) == sizes_of(value)
        if known is not None:
            return known.size == 1
        if op in ops:
            return True
        if not isinstance(op, RelayOp) or type(op) not in _ELEMENTWISE or len(ops) >= _MOST_OPS:
            return False
        fits = sizes_of(each) == sizes_of(value) and all(visit(part) for part in op.operands)
        ops[op] = None
        return fits

    return (bytes_[0], numbers, list(ops)) if visit(value) and bytes_ else None


def _numbers(value: SSAValue) -> tuple[SSAValue, Array] | None:
    """Returns a byte, and the 256 real values that a quantised value has for it, perhaps after a
    lookup.
    """
    integers = quantised(value)
    if integers is None or not integers.is_bytes:
        return None
    scale, zero_point = constant_array(integers.scale), constant_array(integers.zero_point)
    if scale is None or zero_point is None:
        return None
    byte, results = integers.data, np.arange(256, dtype=np.uint8).view(integers.dtype)
    if isinstance(byte.owner, qnn.LookupOp):
        table = constant_array(byte.owner.table)
        if table is not None:
            byte, results = byte.owner.data, table
    return byte, (results.astype(np.int32) - zero_point.astype(np.int32)).astype(np.float32) * scale


def _elementwise_ops() -> frozenset[type[RelayOp]]:
    """Returns the ops whose result elements depend only on the operands' elements at the same
    position.
    """
    families = [*vars(elementwise).values(), *vars(logic).values()]
    kinds = (elementwise.UnaryOp, elementwise.BroadcastOp)
    found = [item for item in families if isinstance(item, type) and issubclass(item, kinds)]
    return frozenset(
        [
            *found,
            elementwise.CastOp,
            elementwise.WhereOp,
            nn.LeakyReluOp,
            nn.PreluOp,
            nn.ReluOp,
        ]
    )


_ELEMENTWISE = _elementwise_ops()
_RULES: dict[type[RelayOp], Rule] = {
    ConcatenateOp: _concatenated,
    MeanOp: _mean,
    elementwise.AddOp: _binary(qnn.AddOp),
    elementwise.MultiplyOp: _binary(qnn.MultiplyOp),
    qnn.DequantizeOp: _requantised,
    **{kind: _pool(qnn_window.AVG_POOL[n]) for n, kind in pool.AVG_POOL.items()},
    **{kind: _pool(qnn_window.GLOBAL_AVG_POOL[n]) for n, kind in pool.GLOBAL_AVG_POOL.items()},
}
