"""The pass `lower-small-types`.

Elements narrower than f16 are stored as codes, one byte each; tables convert between codes and
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    AnyFloat,
    Float4E2M1FNType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
    f32,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.abi import COMPILER
from byoc_mlir.dialects.relay import ConstantOp, RelayOp, bits, elementwise, index, logic, transform
from byoc_mlir.dialects.relay.base import Tensor, shape_of, tensor_type
from byoc_mlir.dialects.relay.control import ControlOp
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.shape import known_shape
from byoc_mlir.limits import in_time
from byoc_mlir.tensors import Array

_FLOATS = (
    *(Float4E2M1FNType, Float8E4M3FNType, Float8E4M3FNUZType),
    *(Float8E5M2FNUZType, Float8E5M2Type, Float8E8M0FNUType),
)
_INFINITY_BITS = 0x7F800000


def is_small_float(element_type: Attribute) -> bool:
    """True if the type is a float of at most eight bits."""
    return isinstance(element_type, _FLOATS)


def is_small_integer(element_type: Attribute) -> bool:
    """True if the type is an integer of two or four bits."""
    return isinstance(element_type, IntegerType) and 1 < element_type.width.data < 8


def is_small(element_type: Attribute) -> bool:
    """True if values of the type are stored as codes, one byte each."""
    return is_small_float(element_type) or is_small_integer(element_type)


@cache
def decoding_table(element_type: Attribute) -> Array:
    """Returns a table `[256]` of the values of all codes, as `f32` or `i32`."""
    wide = np.float32 if is_small_float(element_type) else np.int32
    codes = np.arange(256, dtype=np.uint8)
    if is_small_integer(element_type):
        assert isinstance(element_type, IntegerType)
        codes &= (1 << element_type.width.data) - 1
    if isinstance(element_type, Float4E2M1FNType):
        codes &= 15
    return codes.view(numpy_dtype(element_type)).astype(wide)


@dataclass(frozen=True)
class Encoding:
    """Table that maps an `f32` to a code, by thresholds for its magnitude.

    `thresholds [n]` ascend. A number whose magnitude is between `thresholds[i]` and the next
    threshold has the code `positive[i]`, or `negative[i]` if it is negative. Entry 0 covers all
    magnitudes below `thresholds[1]`. `n` is a power of two: the last thresholds are NaN, which no
    magnitude reaches.
    """

    thresholds: Array
    positive: Array
    negative: Array
    nan: int


@cache
def encoding(element_type: Attribute) -> Encoding:
    """Returns the encoding of a small float type, derived from numpy's conversion."""
    dtype = numpy_dtype(element_type)

    def codes(bits: Array) -> Array:
        with np.errstate(all="ignore"):
            return bits.astype(np.uint32).view(np.float32).astype(dtype).view(np.uint8)

    starts = [0]
    while (end := _last_alike(starts[-1], codes)) < _INFINITY_BITS:
        starts.append(end + 1)
    bits = np.asarray(starts)
    count = 1 << (len(starts) - 1).bit_length()
    thresholds = np.full(count, np.nan, np.float32)
    thresholds[: len(starts)] = bits.astype(np.uint32).view(np.float32)
    padding = (0, count - len(starts))
    positive = np.pad(codes(bits), padding)
    negative = np.pad(codes(bits | 0x80000000), padding)
    (nan,) = codes(np.asarray([0x7FC00000]))
    return Encoding(thresholds, positive, negative, int(nan))


def _last_alike(start: int, codes: Any) -> int:
    """Returns the last bit pattern that has the same code as `start`.

    The search first doubles, then halves its step.
    """
    wanted = codes(np.asarray([start]))[0]
    low, step = start, 1
    while low + step <= _INFINITY_BITS and codes(np.asarray([low + step]))[0] == wanted:
        low += step
        step *= 2
    while step:
        if low + step <= _INFINITY_BITS and codes(np.asarray([low + step]))[0] == wanted:
            low += step
        step //= 2
    return low


CODE = IntegerType(8, Signedness.UNSIGNED)

_MOVES = (
    *(transform.BroadcastToOp, transform.ConcatenateOp, transform.ExpandDimsOp),
    *(transform.ReshapeOp, transform.SplitOp, transform.SqueezeOp),
    *(transform.StridedSliceOp, transform.TransposeOp, elementwise.WhereOp),
    *(index.TakeOp, index.GatherOp, index.GatherNdOp),
    ControlOp,
)


class LowerSmallTypes(ModulePass):
    """Rewrites floats of at most eight bits, and integers of two and four bits, to codes in `ui8`.

    Ops that move elements move the codes. Other ops compute in `f32` or `i32`: a table lookup
    decodes their operands, and a search encodes their results.

    ```mlir
    %0 = relay.cast %x {dtype = f32} : (tensor<8xf8E5M2>) -> tensor<8xf32>
    // becomes
    %i = relay.cast %x {dtype = i32} : (tensor<8xui8>) -> tensor<8xi32>
    %0 = relay.take %table, %i : (tensor<256xf32>, tensor<8xi32>) -> tensor<8xf32>
    ```
    """

    name = "lower-small-types"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp) and COMPILER not in function.attributes:
                for block in function.body.blocks:
                    _lower_function(function, block)


def _lower_function(function: func.FuncOp, block: Block) -> None:
    codes = _Codes()
    for argument in tuple(block.args):
        codes.retype(argument)
    for op in in_time(block.ops):
        if isinstance(op, RelayOp) and codes.concern(op):
            _lower_op(op, codes)
    if codes.types:
        function.update_function_type()


class _Codes:
    """Record of the values that hold codes, with their original element types."""

    def __init__(self) -> None:
        self.types: dict[SSAValue, Attribute] = {}

    def concern(self, op: RelayOp) -> bool:
        """True if an operand or a result has a small type."""
        return any(operand in self.types for operand in op.operands) or any(
            is_small(tensor_type(result).element_type) for result in op.results
        )

    def retype(self, value: SSAValue) -> None:
        """Changes the type of a value of a small type to the type of codes."""
        if not isinstance(value.type, TensorType):
            return
        type_ = tensor_type(value)
        if is_small(type_.element_type):
            coded = TensorType(CODE, known_shape(type_))
            new = Rewriter.replace_value_with_new_type(value, coded)
            self.types[new] = type_.element_type

    def record(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """Records that a new value holds codes of `element_type`."""
        self.types[value] = element_type
        return value


def _lower_op(op: RelayOp, codes: _Codes) -> None:
    if isinstance(op, _MOVES) or (
        isinstance(op, transform.PadOp) and op.pad_mode.data != "constant"
    ):
        for result in tuple(op.results):
            codes.retype(result)
        return
    before = _Before(op)
    match op:
        case ConstantOp():
            element_type = op.type.element_type
            coded = ConstantOp.of(op.weight.name, op.array.view(np.uint8))
            results = [codes.record(before.add(coded), element_type)]
        case elementwise.CastOp():
            results = [_cast(op, codes, before)]
        case bits.ReinterpretOp():
            results = [_reinterpret(op, codes, before)]
        case _:
            results = _compute(op, codes, before)
    Rewriter.replace_op(op, (), results)


class _Before:
    """Builder that inserts ops before an op, with its location."""

    def __init__(self, op: Operation):
        self._op = op

    def add(self, op: RelayOp) -> SSAValue:
        """Adds an op and returns its first result."""
        op.location = self._op.location
        Rewriter.insert_op(op, InsertPoint.before(self._op))
        return op.results[0]

    def constant(self, array: Array) -> SSAValue:
        """Adds a constant."""
        return self.add(ConstantOp.of("table", array))


def _decoded(value: SSAValue, codes: _Codes, before: _Before) -> SSAValue:
    """Returns the decoded values of codes; other values are unchanged."""
    if value not in codes.types:
        return value
    table = before.constant(decoding_table(codes.types[value]))
    places = before.add(elementwise.CastOp(value, dtype=i32))
    return before.add(index.TakeOp(table, places))


def _encoded(value: SSAValue, element_type: Attribute, codes: _Codes, before: _Before) -> SSAValue:
    """Returns the codes for values of any type."""
    if is_small_float(element_type):
        wide = value
        if tensor_type(value).element_type != f32:
            wide = before.add(elementwise.CastOp(value, dtype=f32))
        return codes.record(_encoded_floats(wide, element_type, before), element_type)
    if isinstance(tensor_type(value).element_type, AnyFloat):
        value = before.add(elementwise.CastOp(value, dtype=i32))
    cut = before.add(elementwise.CastOp(value, dtype=CODE))
    assert isinstance(element_type, IntegerType)
    mask = before.constant(np.asarray((1 << element_type.width.data) - 1, np.uint8))
    return codes.record(before.add(logic.BitwiseAndOp(cut, mask)), element_type)


def _encoded_floats(value: SSAValue, element_type: Attribute, before: _Before) -> SSAValue:
    """Emits a binary search among the type's thresholds."""
    found = encoding(element_type)
    thresholds = before.constant(found.thresholds)
    magnitude = before.add(elementwise.AbsOp(value))
    place = before.constant(np.zeros((), np.int32))
    step = len(found.thresholds) // 2
    while step:
        offset = before.constant(np.asarray(step, np.int32))
        further = before.add(elementwise.AddOp(place, offset))
        threshold = before.add(index.TakeOp(thresholds, further))
        is_beyond = before.add(logic.GreaterEqualOp(magnitude, threshold))
        place = before.add(elementwise.WhereOp(is_beyond, further, place))
        step //= 2
    positive = before.add(index.TakeOp(before.constant(found.positive), place))
    negative = before.add(index.TakeOp(before.constant(found.negative), place))
    sign = before.add(bits.ReinterpretOp(value, dtype=i32))
    zero = before.constant(np.zeros((), np.int32))
    is_below = before.add(logic.LessOp(sign, zero))
    signed = before.add(elementwise.WhereOp(is_below, negative, positive))
    nan = before.constant(np.asarray(found.nan, np.uint8))
    is_nan = before.add(logic.IsnanOp(value))
    return before.add(elementwise.WhereOp(is_nan, nan, signed))


def _cast(op: elementwise.CastOp, codes: _Codes, before: _Before) -> SSAValue:
    value = _decoded(op.data, codes, before)
    if is_small(op.dtype):
        return _encoded(value, op.dtype, codes, before)
    if tensor_type(value).element_type == op.dtype:
        return value
    return before.add(elementwise.CastOp(value, dtype=op.dtype))


def _reinterpret(op: bits.ReinterpretOp, codes: _Codes, before: _Before) -> SSAValue:
    if not is_small(op.dtype):
        return before.add(bits.ReinterpretOp(op.data, dtype=op.dtype))
    value = op.data
    if tensor_type(value).element_type != CODE:
        value = before.add(bits.ReinterpretOp(value, dtype=CODE))
    elif value in codes.types:  # one value cannot be the codes of two types
        value = before.add(transform.ReshapeOp(value, newshape=shape_of(value)))
    return codes.record(value, op.dtype)


def _compute(op: RelayOp, codes: _Codes, before: _Before) -> list[SSAValue]:
    """Emits the op on decoded operands, and encodes its results."""
    operands = [_decoded(operand, codes, before) for operand in op.operands]
    types = [tensor_type(result) for result in op.results]
    wide = type(op).create(
        operands=operands,
        result_types=[_widened(type_) for type_ in types],
        properties=dict(op.properties),
    )
    before.add(wide)
    return [
        _encoded(result, type_.element_type, codes, before)
        if is_small(type_.element_type)
        else result
        for result, type_ in zip(wide.results, types, strict=True)
    ]


def _widened(type_: Tensor) -> Tensor:
    if not is_small(type_.element_type):
        return type_
    wide = f32 if is_small_float(type_.element_type) else i32
    return TensorType(wide, known_shape(type_))
