"""Softmax of rows that are contiguous in memory.

The code iterates over a row three times: for the maximum, for the exponentials and their sum, and
to scale them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType, VectorType, i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.dialects import llvm_ext
from byoc_mlir.dims import Size
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import KernelCode, Slot, read_parameters
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.kernels.f32_code import LOG2_E, MANTISSA_BITS, TO_INTEGER
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import words
from byoc_mlir.kernels.vectors import ELEMENT_BYTES, Vectors, broadcast, shuffled, splat

PREFIX = "byoc_softmax"

_AT_A_TIME = 2
"""Number of vectors whose exponentials are interleaved, since each step depends on the previous
one."""

_LOWEST = float("-inf")
_IS_ZERO = -127.0
"""Exponent t at which `2^t` counts as zero: it is a denormal there."""
_EXP2 = (1.0, 0.69314718, 0.24022648, 0.055503324, 0.0096184369, 0.0013398875, 0.00015353362)
"""Polynomial of `2^f` for |f| <= 1/2, which is 1 at 0; accurate to 1 ulp."""

T = TypeVar("T")

Step = Callable[[Vectors, SSAValue, SSAValue], SSAValue]
"""Function that generates a step, which folds the vector at an offset of a row into an
accumulator."""


@dataclass(frozen=True)
class SoftmaxParameters(Generic[T]):
    """Run-time parameters: sizes of a softmax, in elements."""

    rows: T
    columns: T
    shared: T
    """Minimum number of elements for more than one thread."""


def define_softmax(module: ModuleBuilder, lanes: int) -> str:
    """Defines `void (slots)` for all rows, on all threads if there are enough elements.

    Returns its symbol.
    """
    name = f"{PREFIX}_{lanes}"
    if module.has(name):
        return name
    body = _define_any_rows(module, lanes)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    it = read_parameters(function, slots, SoftmaxParameters[SSAValue])
    elements = function.multiply(it.rows, it.columns)
    function.branch(
        function.compare("slt", elements, it.shared),
        lambda: function.do(body, slots, function.integer(0), it.rows),
        lambda: function.parallel_for(body, slots, it.rows),
    )
    function.finish()
    return name


def _define_any_rows(module: ModuleBuilder, lanes: int) -> str:
    """Defines `void (slots, begin, end)` for rows of any length; returns its symbol."""
    long = _define_rows(module, lanes, "rows", _Rows)
    short = _define_rows(module, lanes, "short_rows", _ShortRows)
    name = f"{PREFIX}_any_rows_{lanes}"
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    it = read_parameters(function, function.parameters[0], SoftmaxParameters[SSAValue])
    is_short = function.compare("slt", it.columns, function.integer(lanes))
    function.branch(
        is_short,
        lambda: function.do(short, *function.parameters),
        lambda: function.do(long, *function.parameters),
    )
    function.finish()
    return name


def _define_rows(module: ModuleBuilder, lanes: int, what: str, kind: type[_AnyRows]) -> str:
    """Defines `void (slots, begin, end)` for a range of rows; returns its symbol."""
    name = f"{PREFIX}_{what}_{lanes}"
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    kind(function, lanes).write()
    function.finish()
    return name


class _AnyRows(ABC):
    """Writer of the loop over rows."""

    def __init__(self, function: FunctionBuilder, lanes: int):
        self._function = function
        self._slots, self._begin, self._end = function.parameters
        self._it = read_parameters(function, self._slots, SoftmaxParameters[SSAValue])
        self._one = Vectors(function, lanes)

    def write(self) -> None:
        """Generates the function."""
        function, slots = self._function, self._slots
        source, result = (function.pointer(slots, one) for one in (Slot.SOURCE, Slot.RESULT))

        def row(number: SSAValue) -> None:
            place = function.multiply(number, self._it.columns)
            self._row(function.gep(source, place), function.gep(result, place))

        function.for_range(self._begin, self._end, row)

    @abstractmethod
    def _row(self, source: SSAValue, result: SSAValue) -> None:
        """Generates the softmax of one row."""

    def _scaled_by(self, total: SSAValue, peak: SSAValue) -> SSAValue:
        """Computes the factor of the exponentials, `1 / total`; NaN if the peak is not finite."""
        function = self._function
        nothing = function.insert(llvm.FSubOp(peak, peak))
        total = function.insert(llvm.FAddOp(total, nothing))
        return function.insert(llvm.FDivOp(function.real(1.0), total))


class _ShortRows(_AnyRows):
    """Writer for rows shorter than a vector, with masked lanes."""

    def __init__(self, function: FunctionBuilder, lanes: int):
        super().__init__(function, lanes)
        counted = _places(self._one), _spread(self._one, self._it.columns)
        self._mask = function.compare("slt", *counted)

    def _row(self, source: SSAValue, result: SSAValue) -> None:
        function, one = self._function, self._one
        lowest = one.splat(_LOWEST)
        load = llvm_ext.MaskedLoadOp(source, self._mask, lowest, ELEMENT_BYTES)
        value = function.insert(load)
        peak = one.largest(value)
        value = _exp(one, one.subtract(value, one.broadcast(peak)))
        factor = self._scaled_by(one.total(value), peak)
        value = one.multiply(value, one.broadcast(factor))
        function.append(llvm.MaskedStoreOp(value, result, self._mask, ELEMENT_BYTES))


class _Rows(_AnyRows):
    """Writer for rows of at least one vector.

    A vector has the processor's lanes, or `_AT_A_TIME` times as many; LLVM then splits it. The last
    vector of a row ends at the row's end, so it may overlap the previous vector; the shared
    elements are computed twice.
    """

    def __init__(self, function: FunctionBuilder, lanes: int):
        super().__init__(function, lanes)
        self._many = Vectors(function, lanes * _AT_A_TIME)
        before = function.subtract(self._it.columns, 1)
        whole, place = function.divmod(before, function.integer(lanes))
        self._groups, self._singles = function.divmod(whole, function.integer(_AT_A_TIME))
        self._grouped = function.multiply(self._groups, self._many.lanes)
        self._last = function.subtract(self._it.columns, lanes)
        self._is_new = self._lanes_behind(function.subtract(function.integer(lanes - 2), place))

    def _row(self, source: SSAValue, result: SSAValue) -> None:
        function, one = self._function, self._one
        last = one.load(function.gep(source, self._last))
        peak = one.largest(self._folded(_LOWEST, self._higher(source), last, Vectors.maximum))

        def exponentials(vectors: Vectors, x: SSAValue) -> SSAValue:
            return _exp(vectors, vectors.subtract(x, vectors.broadcast(peak)))

        def add(vectors: Vectors, at: SSAValue, sums: SSAValue) -> SSAValue:
            value = exponentials(vectors, vectors.load(function.gep(source, at)))
            vectors.store(value, function.gep(result, at))
            return vectors.add(sums, value)

        last = exponentials(one, last)
        total = one.total(self._folded(0.0, add, self._new(last), Vectors.add))
        factor = self._scaled_by(total, peak)

        def scale(vectors: Vectors, at: SSAValue) -> None:
            self._store(vectors, vectors.load(function.gep(result, at)), factor, result, at)

        self._each(scale)
        self._store(one, last, factor, result, self._last)

    def _higher(self, source: SSAValue) -> Step:
        def higher(vectors: Vectors, at: SSAValue, peaks: SSAValue) -> SSAValue:
            return vectors.maximum(vectors.load(self._function.gep(source, at)), peaks)

        return higher

    def _store(
        self, vectors: Vectors, value: SSAValue, factor: SSAValue, result: SSAValue, at: SSAValue
    ) -> None:
        scaled = vectors.multiply(value, vectors.broadcast(factor))
        vectors.store(scaled, self._function.gep(result, at))

    def _folded(
        self,
        start: float,
        step: Step,
        last: SSAValue,
        joined: Callable[[Vectors, SSAValue, SSAValue], SSAValue],
    ) -> SSAValue:
        """Applies `step` to all vectors of a row in order; returns one vector of lane-wise
        accumulators.
        """
        function, one, many = self._function, self._one, self._many

        def group(index: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [step(many, function.multiply(index, many.lanes), carried[0])]

        def single(index: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            at = function.add(self._grouped, function.multiply(index, one.lanes))
            return [step(one, at, carried[0])]

        (wide,) = function.fold(self._groups, [many.splat(start)], group)
        (value,) = function.fold(self._singles, [last], single)
        for first in range(0, many.lanes, one.lanes):
            part = shuffled(function, wide, wide, range(first, first + one.lanes))
            value = joined(one, value, part)
        return value

    def _each(self, body: Callable[[Vectors, SSAValue], None]) -> None:
        """Generates loops that run `body` at each offset of a row where a whole vector begins."""
        function, one, many = self._function, self._one, self._many

        def group(index: SSAValue) -> None:
            body(many, function.multiply(index, many.lanes))

        def single(index: SSAValue) -> None:
            body(one, function.add(self._grouped, function.multiply(index, one.lanes)))

        function.loop(self._groups, group)
        function.loop(self._singles, single)

    def _lanes_behind(self, last: SSAValue) -> SSAValue:
        """Returns a mask of the lanes after lane `last`; for -1, of all lanes."""
        function, type_ = self._function, _integers(self._one)
        below = function.binary(llvm.SubOp, _spread(self._one, last), _places(self._one))
        return function.binary(llvm.AShrOp, below, function.constant(splat(31, type_), type_))

    def _new(self, value: SSAValue) -> SSAValue:
        """Returns the last vector, with zeros in the lanes that overlap the previous vector."""
        function = self._function
        bits = function.insert(llvm.BitcastOp(value, _integers(self._one)))
        kept = function.binary(llvm.AndOp, bits, self._is_new)
        return function.insert(llvm.BitcastOp(kept, self._one.type))


def _exp(vectors: Vectors, x: SSAValue) -> SSAValue:
    """Computes `e^x` for x <= 0 as `2^n 2^f`; a NaN results in an arbitrary number.

    The code adds n to the exponent field of `2^f`. With the lowest n, and `2^f` = 1, all bits are
    zero: the result is 0.
    """
    function, integers = vectors.function, _integers(vectors)
    scaled = vectors.multiply(x, vectors.splat(LOG2_E))
    scaled = vectors.maximum(scaled, vectors.splat(_IS_ZERO))
    magic = vectors.splat(TO_INTEGER)
    shifted = vectors.add(scaled, magic, contract=False)
    fraction = vectors.subtract(scaled, vectors.subtract(shifted, magic, contract=False))
    *rest, value = map(vectors.splat, _EXP2)
    for coefficient in reversed(rest):
        value = vectors.multiply_add(value, fraction, coefficient)
    bits = function.constant(splat(MANTISSA_BITS, integers), integers)
    power = function.binary(llvm.ShlOp, function.insert(llvm.BitcastOp(shifted, integers)), bits)
    power = function.binary(llvm.AddOp, function.insert(llvm.BitcastOp(value, integers)), power)
    return function.insert(llvm.BitcastOp(power, vectors.type))


def _integers(vectors: Vectors) -> VectorType[IntegerType]:
    return VectorType(i32, [vectors.lanes])


def _places(vectors: Vectors) -> SSAValue:
    """Returns a vector of lane indices."""
    type_ = _integers(vectors)
    numbers = DenseIntOrFPElementsAttr.from_list(type_, list(range(vectors.lanes)))
    return vectors.function.constant(numbers, type_)


def _spread(vectors: Vectors, number: SSAValue) -> SSAValue:
    """Broadcasts a small integer to all lanes, as `i32`."""
    function, type_ = vectors.function, _integers(vectors)
    narrow = function.insert(llvm.TruncOp(number, i32))
    return broadcast(function, narrow, function.constant(splat(0, type_), type_))


_OPS = 24
"""Approximate ops per element, in three passes over its row."""


def softmax_code(rows: Size, columns: Size, lanes: int) -> KernelCode:
    """Returns the kernel of `exp(x - peak) / sum(exp(x - peak))` along each row of `f32`.

    The result may share the source's memory.

    Args:
        rows: number of rows.
        columns: elements of a row.
        lanes: lanes of the processor's vectors.
    """
    shared = math.ceil(ASSUMED.parallel_cycles * ASSUMED.loop_iterations / _OPS)
    return KernelCode(
        partial(define_softmax, lanes=lanes), words(SoftmaxParameters(rows, columns, shared))
    )
