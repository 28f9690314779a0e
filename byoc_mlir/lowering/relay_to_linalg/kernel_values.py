"""Values in the body of a `host.kernel`: scalars, buffers, variables."""

from __future__ import annotations

import math as pymath
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import BoolAttr, IndexType, MemRefType, f32, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.dialects.dynamic_buffers import ViewOp, buffer_sizes, dense_buffer, row_major
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.dims import Dim, Size
from byoc_mlir.lowering.relay_to_linalg.computed_types import Kind
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars, floor_remainder

if TYPE_CHECKING:
    from byoc_mlir.lowering.relay_to_linalg.kernel import Kernel

INDEX = IndexType()
_TEMPORAL = {"nontemporal": BoolAttr.from_bool(False)}

Index: TypeAlias = "Num | Size"
Number: TypeAlias = "Num | float | Dim"
"""Operand of an operator; a `Dim` gets the type of the other operand."""


class Num:
    """Scalar of a kernel; its operators emit ops.

    `/` and `%` have the semantics of C. Comparisons give an i1, on which `&`, `|` and `~` work.
    """

    def __init__(self, kernel: Kernel, value: SSAValue, element_type: Attribute):
        self._kernel = kernel
        self.value = value
        self.type = element_type

    def _binary(self, name: str, other: Number, *, swapped: bool = False) -> Num:
        rhs = self._kernel.like(other, self)
        lhs, rhs = (rhs, self) if swapped else (self, rhs)
        return self._made(self._scalars.binary(name, lhs.value, rhs.value))

    def _compare(self, predicate: str, other: Number) -> Num:
        rhs = self._kernel.like(other, self)
        return Num(self._kernel, self._scalars.compare(predicate, self.value, rhs.value), i1)

    def _bits(self, op: type[Operation], other: Number) -> Num:
        operands = [self.value, self._kernel.like(other, self).value]
        made = op.create(operands=operands, result_types=[self.value.type])
        return self._made(self._kernel.emit(made))

    @property
    def _scalars(self) -> Scalars:
        return self._kernel.scalars(Kind.of(self.type))

    def _made(self, value: SSAValue) -> Num:
        return Num(self._kernel, value, self.type)

    def __add__(self, other: Number) -> Num:
        return self if other == 0 else self._binary("add", other)

    def __radd__(self, other: float) -> Num:
        return self + other

    def __sub__(self, other: Number) -> Num:
        return self if other == 0 else self._binary("sub", other)

    def __rsub__(self, other: float) -> Num:
        return self._binary("sub", other, swapped=True)

    def __mul__(self, other: Number) -> Num:
        return self if other == 1 else self._binary("mul", other)

    def __rmul__(self, other: float) -> Num:
        return self * other

    def __truediv__(self, other: Number) -> Num:
        return self if other == 1 else self._binary("div", other)

    def __rtruediv__(self, other: float) -> Num:
        return self._binary("div", other, swapped=True)

    def __mod__(self, other: Number) -> Num:
        return self._binary("rem", other)

    def __lt__(self, other: Number) -> Num:
        return self._compare("lt", other)

    def __le__(self, other: Number) -> Num:
        return self._compare("le", other)

    def __gt__(self, other: Number) -> Num:
        return self._compare("gt", other)

    def __ge__(self, other: Number) -> Num:
        return self._compare("ge", other)

    def __and__(self, other: Num) -> Num:
        return self._bits(arith.AndIOp, other)

    def __or__(self, other: Num) -> Num:
        return self._bits(arith.OrIOp, other)

    def __invert__(self) -> Num:
        return self._bits(arith.XOrIOp, -1 if self.type != i1 else 1)

    def shifted_right(self, count: int) -> Num:
        """Emits a logical right shift of an integer."""
        return self._bits(arith.ShRUIOp, count) if count else self

    def bits_as(self, type_: Attribute) -> Num:
        """Emits the low bits of an integer, reinterpreted as a float of that width."""
        bits = self.to(i32 if type_ == f32 else i64)
        return Num(self._kernel, self._kernel.emit(arith.BitcastOp(bits.value, type_)), type_)

    def as_bits(self) -> Num:
        """Emits the bits of an `f32` or `f64` as an integer."""
        type_ = i32 if self.type == f32 else i64
        return Num(self._kernel, self._kernel.emit(arith.BitcastOp(self.value, type_)), type_)

    def __neg__(self) -> Num:
        return 0 - self

    def equals(self, other: Number) -> Num:
        """Emits the comparison with `other` for equality, as i1."""
        return self._compare("eq", other)

    def floor_remainder(self, other: Number) -> Num:
        """Emits the remainder with the sign of the divisor."""
        rhs = self._kernel.like(other, self)
        return self._made(floor_remainder(self._scalars, self.value, rhs.value))

    def max(self, other: Number) -> Num:
        """Emits the maximum with `other`."""
        return self._binary("max", other)

    def min(self, other: Number) -> Num:
        """Emits the minimum with `other`."""
        return self._binary("min", other)

    def within(self, low: Number, high: Number) -> Num:
        """Emits the clamping to [low, high]."""
        return self.max(low).min(high)

    def unary(self, op: type[Operation]) -> Num:
        """Emits an op of the `math` dialect."""
        return self._made(self._scalars.unary(op, self.value))

    def is_nan(self) -> Num:
        """Emits the test for NaN; false for integers."""
        if Kind.of(self.type) is not Kind.FLOAT:
            return self._kernel.like(0, Num(self._kernel, self.value, i1))
        return Num(self._kernel, self._kernel.emit(arith.CmpfOp(self.value, self.value, "uno")), i1)

    def to(self, type_: Attribute) -> Num:
        """Emits the conversion to another element type, or to `INDEX`."""
        kernel = self._kernel
        if type_ == self.type:
            return self
        if self.type == INDEX:
            wide = Num(kernel, kernel.emit(arith.IndexCastOp(self.value, i64)), i64)
            return wide.to(type_)
        if type_ == INDEX:
            wide = self if self.type == i64 else self.to(i64)
            return Num(kernel, kernel.emit(arith.IndexCastOp(wide.value, INDEX)), INDEX)
        return Num(kernel, self._scalars.cast(self.value, self.type, type_), type_)


class Buffer:
    """Dense memref in a kernel; `buffer[i, j]` emits loads and stores."""

    def __init__(self, kernel: Kernel, memref_: SSAValue):
        assert isinstance(memref_.type, MemRefType)
        self._kernel = kernel
        self.memref = memref_
        self.type: Attribute = memref_.type.element_type
        self.sizes = buffer_sizes(memref_.type)
        self._reshaped: dict[tuple[Size, ...], Buffer] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the buffer's sizes, for kernels that need static ones.

        Raises:
            UndecidedSizeError: a size is symbolic.
        """
        return tuple(map(operator.index, self.sizes))

    @property
    def size(self) -> Size:
        """Returns the number of elements."""
        return pymath.prod(self.sizes)

    def __getitem__(self, position: Index | Sequence[Index]) -> Num:
        kernel = self._kernel
        load = memref.LoadOp.get(*self._place(position))
        value = kernel.scalars(Kind.of(self.type)).unwrap(kernel.emit(load))
        return Num(kernel, value, self.type)

    def __setitem__(self, position: Index | Sequence[Index], number: Number) -> None:
        kernel = self._kernel
        value = kernel.as_type(number, self.type).value
        wrapped = kernel.scalars(Kind.of(self.type)).wrap(value, self.type)
        memory, indices = self._place(position)
        kernel.add(
            memref.StoreOp.create(operands=[wrapped, memory, *indices], properties=_TEMPORAL)
        )

    def _place(self, position: Index | Sequence[Index]) -> tuple[SSAValue, list[SSAValue]]:
        """Returns a memref and the indices of a position in it; the memref is one-dimensional if
        strides are symbolic.
        """
        kernel = self._kernel
        if not is_symbolic(self.sizes):
            return self.memref, kernel.positions(position)
        places = position if isinstance(position, Sequence) else (position,)
        linear = kernel.index(0)
        for place, stride in zip(places, row_major(self.sizes), strict=True):
            linear = linear + kernel.index(place) * stride
        return self.reshaped(self.size).memref, [linear.value]

    def reshaped(self, *shape: Size) -> Buffer:
        """Returns a row-major view of the buffer in another shape."""
        if shape == self.sizes:
            return self
        if shape not in self._reshaped:
            self._reshaped[shape] = Buffer(self._kernel, self._kernel.hoist(self._view(shape)))
        return self._reshaped[shape]

    def _view(self, shape: tuple[Size, ...]) -> Operation:
        type_ = dense_buffer(self.type, shape)
        if is_symbolic((*shape, *self.sizes)):
            return ViewOp(self.memref, type_)
        numbers = type_.get_shape()
        strides = [pymath.prod(numbers[axis + 1 :]) for axis in range(len(numbers))]
        return memref.ReinterpretCastOp(self.memref, [], [], [], [0], numbers, strides, type_)

    def copy_from(self, other: Buffer) -> None:
        """Emits the copy of all elements of a buffer of the same type."""
        if not is_symbolic(self.sizes):
            self._kernel.add(memref.CopyOp(other.memref, self.memref))
            return
        target, source = self.reshaped(self.size), other.reshaped(self.size)
        with self._kernel.loop(self.size) as place:
            target[place] = source[place]


class Variable:
    """Mutable scalar: a stack slot, which LLVM turns into a register."""

    def __init__(self, place: Buffer):
        self._place = place

    @property
    def value(self) -> Num:
        """Emits the load of the variable's current value."""
        return self._place[0]

    @value.setter
    def value(self, number: Number) -> None:
        self._place[0] = number
