"""The pass `unsigned-bytes`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, ModuleOp, i8
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay import ConstantOp, RelayOp, pool, qnn, qnn_window, transform
from byoc_mlir.dialects.relay.base import sizes_of, tensor_of, tensor_type
from byoc_mlir.dialects.relay.element_types import ui8
from byoc_mlir.dialects.relay.elementwise import ClipOp
from byoc_mlir.runtime.system.cpu import has_vnni
from byoc_mlir.tensors import Array
from byoc_mlir.transforms.rewriting import constant_array, erase_dead_ops

_SIGN = 128

_MEANS = (*qnn_window.AVG_POOL.values(), *qnn_window.GLOBAL_AVG_POOL.values())
_PRODUCTS = (*qnn_window.CONV.values(), *qnn_window.CONV_TRANSPOSE.values(), qnn.DenseOp)

_READS: Mapping[type[RelayOp], Mapping[str, str]] = {
    **{kind: {"data": "data_zero_point"} for kind in _PRODUCTS},
    **{kind: {"data": "input_zero_point"} for kind in (qnn.RequantizeOp, *_MEANS)},
    **{
        kind: {"lhs": "lhs_zero_point", "rhs": "rhs_zero_point"}
        for kind in (qnn.AddOp, qnn.MultiplyOp)
    },
    qnn.MatmulOp: {"a": "a_zero_point", "b": "b_zero_point"},
    qnn.DequantizeOp: {"data": "zero_point"},
    qnn.LookupOp: {"data": "table"},
}
"""Ops that read bytes: for each such operand, the operand that determines its zero point."""

_WRITES: Mapping[type[RelayOp], str] = {
    **dict.fromkeys((qnn.RequantizeOp, qnn.AddOp, qnn.MultiplyOp, *_MEANS), "output_zero_point"),
    qnn.QuantizeOp: "zero_point",
    qnn.LookupOp: "table",
}
"""Ops that write bytes: the operand that determines the result's zero point."""

_MOVES = (
    *(*pool.MAX_POOL.values(), *pool.GLOBAL_MAX_POOL.values(), ClipOp),
    *(transform.ReshapeOp, transform.TransposeOp, transform.SqueezeOp, transform.ExpandDimsOp),
    *(transform.ConcatenateOp, transform.SplitOp, transform.StridedSliceOp),
)
"""Ops whose result bytes are bytes of their inputs, or their maxima."""


@dataclass(frozen=True)
class UnsignedBytes(ModulePass):
    """Converts quantised tensors of `i8` to `ui8`, with zero points larger by 128.

    Without VNNI, int8 instructions require one operand of unsigned bytes, so the pass converts
    every block. With VNNI, it converts a block if that makes more zero points 0, as after relus:
    zero points of 0 cost nothing. A tensor stays `i8` if one of its producers or users has no zero
    point, or if a zero point is not constant.

    Options:
        vnni: true if the processor has VNNI; the default is this processor.

    ```mlir
    %0 = relay.qnn.quantize %x, %scale, %zero : (…, tensor<f32>, tensor<i8>) -> tensor<4xi8>
    // becomes
    %0 = relay.qnn.quantize %x, %scale, %zero_128 : (…, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
    ```
    """

    name = "unsigned-bytes"

    vnni: bool | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with_vnni = has_vnni() if self.vnni is None else self.vnni
        for block in host_blocks(op):
            ops = list(block.ops)
            values = _convertible(ops)
            if not values or (with_vnni and not _gains_zeros(values)):
                continue
            for one in ops:
                _convert(one, values)
            for value in values:
                new = tensor_of(ui8, sizes_of(value))
                Rewriter.replace_value_with_new_type(value, new)
            erase_dead_ops(block)


def _convertible(ops: Sequence[Operation]) -> Collection[SSAValue]:
    """Returns the values that may become `ui8`: all their producers and users allow it."""
    found = {
        value
        for op in ops
        if type(op) in _WRITES or isinstance(op, _MOVES)
        for value in op.results
        if _is_signed(value)
    }
    while True:
        left = {value for value in found if _fits(value, found)}
        if len(left) == len(found):
            return found
        found = left


def _gains_zeros(values: Collection[SSAValue]) -> bool:
    """True if more zero points are 0 after adding 128."""
    zero_points = [
        constant_array(getattr(value.owner, _WRITES[type(value.owner)]))
        for value in values
        if isinstance(value.owner, tuple(_WRITES)) and not isinstance(value.owner, qnn.LookupOp)
    ]
    known = [int(one) for one in zero_points if one is not None and one.size == 1]
    return known.count(-_SIGN) > known.count(0)


def _fits(value: SSAValue, found: Container[SSAValue]) -> bool:
    owner = value.owner
    return (
        isinstance(owner, RelayOp)
        and _may_write(owner, found)
        and all(_may_read(use.operation, value, found) for use in value.uses)
    )


def _may_write(op: RelayOp, found: Container[SSAValue]) -> bool:
    if isinstance(op, _MOVES):
        return _moves_all(op, found)
    return constant_array(getattr(op, _WRITES[type(op)])) is not None


def _may_read(op: Operation, value: SSAValue, found: Container[SSAValue]) -> bool:
    if isinstance(op, _MOVES):
        return _moves_all(op, found)
    if not isinstance(op, tuple(_READS)):
        return False
    reads = _READS[type(op)]
    known = [
        constant_array(getattr(op, zero)) is not None
        for name, zero in reads.items()
        if getattr(op, name) is value
    ]
    return bool(known) and all(known) and sum(one is value for one in op.operands) == len(known)


def _moves_all(op: Operation, found: Container[SSAValue]) -> bool:
    bytes_ = [value for value in (*op.operands, *op.results) if _is_signed(value)]
    return all(value in found for value in bytes_)


def _convert(op: Operation, values: Container[SSAValue]) -> None:
    """Changes the zero points, tables and bounds of an op for its converted values."""
    if isinstance(op, ClipOp) and op.output in values:
        op.a_min = FloatAttr(op.a_min.value.data + _SIGN, op.a_min.type)
        op.a_max = FloatAttr(op.a_max.value.data + _SIGN, op.a_max.type)
    if not isinstance(op, RelayOp):
        return
    for name, zero in _READS.get(type(op), {}).items():
        if getattr(op, name) in values:
            _replace(op, zero, _reordered if zero == "table" else _raised)
    if type(op) in _WRITES and op.results[0] in values:
        _replace(op, _WRITES[type(op)], _raised)


def _replace(op: RelayOp, name: str, changed: Callable[[Array], Array]) -> None:
    """Replaces a constant operand by a changed copy."""
    index = [one for one, _ in op.get_irdl_definition().operands].index(name)
    array = constant_array(op.operands[index])
    assert array is not None
    new = ConstantOp.of(name, changed(array))
    new.location = op.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    op.operands[index] = new.output


def _raised(array: Array) -> Array:
    return (array.astype(np.int16) + _SIGN).astype(np.uint8)


def _reordered(table: Array) -> Array:
    return np.roll(table, _SIGN)


def _is_signed(value: SSAValue) -> bool:
    return tensor_type(value).element_type == i8
