"""Random bits by position, and keys from the C library."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr

from byoc_mlir.dialects.relay import random as relay
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings, Read
from byoc_mlir.lowering.relay_to_linalg.computed_types import Kind
from byoc_mlir.lowering.relay_to_linalg.kernel import Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars, resize

_SOURCES = ("random", "clock")
"""Functions `i64 ()` of the C library for the words of a key: one changes from call to call, the
other from process to process."""


def _lower_random_bits(op: relay.RandomBitsOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    def body(s: Scalars, first: SSAValue, second: SSAValue) -> SSAValue:
        position = resize(s, s.index(0), i32, unsigned=True)
        return _threefry(s, (first, second), position, s.constant(op.stream.value.data, i32))

    reads = [Read(op.key, (AffineConstantExpr(word),)) for word in range(2)]
    return [b.generic(reads, tensor_type(op.output), body, kind=Kind.UNSIGNED)]


def _threefry(s: Scalars, key: tuple[SSAValue, SSAValue], x: SSAValue, y: SSAValue) -> SSAValue:
    """Emits Threefry; returns its first word for the counter `(x, y)`."""

    def xor(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return s.emit(arith.XOrIOp(lhs, rhs))

    def rotated(value: SSAValue, bits: int) -> SSAValue:
        high = s.emit(arith.ShLIOp(value, s.like(bits, value)))
        low = s.emit(arith.ShRUIOp(value, s.like(32 - bits, value)))
        return s.emit(arith.OrIOp(high, low))

    words = (*key, xor(xor(*key), s.constant(relay.PARITY, i32)))
    x, y = s.add(x, words[0]), s.add(y, words[1])
    for turn in range(relay.ROUNDS):
        x = s.add(x, y)
        y = xor(rotated(y, relay.ROTATIONS[turn % len(relay.ROTATIONS)]), x)
        if turn % 4 == 3:
            number = turn // 4 + 1
            x = s.add(x, words[number % 3])
            y = s.add(s.add(y, words[(number + 1) % 3]), s.constant(number, i32))
    return x


def _lower_random_key(op: relay.RandomKeyOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op)
    for word, source in enumerate(_SOURCES):
        b.define(source, partial(func.FuncOp.external, source, [], [i64]))
        drawn = k.emit(func.CallOp(source, [], [i64]))
        k.outputs[0][word] = Num(k, drawn, i64).to(IntegerType(32))
    return k.finish(b)


FUNCTIONS: Lowerings = {
    relay.RandomBitsOp: _lower_random_bits,
    relay.RandomKeyOp: _lower_random_key,
}
