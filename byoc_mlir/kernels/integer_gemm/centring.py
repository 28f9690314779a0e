"""Conversion of int8 images to operand A: padded, with channels filled up, and centred.

A centred element is `i16` or `f32`, with the zero point subtracted. Operands of bytes are unsigned
and not centred: in them, the zero point, plus 128 if the source is signed, stands for 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    Float32Type,
    IntegerType,
    VectorType,
    f32,
    i8,
    i16,
    i64,
)
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import Pair, Slot, read_parameters
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.vectors import Vectors, broadcast, splat

T = TypeVar("T")

_LANES = 16
"""Elements that are converted together; LLVM splits vectors that the processor does not have."""

SIGN = 128
"""Offset that converts signed bytes to unsigned ones."""

_COPIES = 4
"""Unroll factor of the loop over vectors."""


def padded(shape: Sequence[int], begins: Pair, ends: Pair) -> Pair:
    """Returns rows and pixels of images `[N, H, W, C]` with padding."""
    (_, lines, pixels, _), (top, left), (bottom, right) = shape, begins, ends
    return top + lines + bottom, left + pixels + right


@dataclass(frozen=True)
class CentringParameters(Generic[T]):
    """Sizes of the source and of the centred image."""

    zero_point: T
    height: T
    width: T
    channels: T
    """Channels of the source, whose size is `height` by `width`."""
    top: T
    left: T
    """Padding left of the source; `top` is the padding above it."""
    lines: T
    pixels: T
    filled: T
    """Channels of the centred image, filled up to whole 32-bit groups; `lines` and `pixels` include
    padding."""

    @staticmethod
    def of(
        zero_point: int, shape: Sequence[int], begins: Pair, ends: Pair, filled: int
    ) -> CentringParameters[int]:
        """Returns the parameters for images `[N, H, W, C]`."""
        (_, height, width, channels), (top, left) = shape, begins
        lines, pixels = padded(shape, begins, ends)
        return CentringParameters(
            zero_point, height, width, channels, top, left, lines, pixels, filled
        )


def define_centring(
    module: ModuleBuilder, *, is_signed: bool, element: IntegerType | Float32Type = i16
) -> str:
    """Defines `void (source, result, words of the parameters…, begin, end)`; returns its symbol.

    The function writes rows `[begin, end)` of all images of the result.
    """
    name = f"byoc_centre_{'i8' if is_signed else 'u8'}_{element}"
    if module.has(name):
        return name
    count = len(CentringParameters.__dataclass_fields__)
    types = (POINTER, POINTER, *(i64,) * (count + 2))
    function = module.function(name, types, result=VOID, internal=True)
    source, result, *rest = function.parameters
    parameters, (begin, end) = CentringParameters(*rest[:count]), rest[count:]
    code = _Centring(function, source, result, parameters, is_signed, element)
    function.for_range(begin, end, code.line)
    function.finish()
    return name


def define_lines(module: ModuleBuilder, name: str, centring: str) -> str:
    """Defines `void (slots, begin, end)`, which centres a range of source rows into the
    workspace.

    Returns its symbol. The parameters of the centring are the first ones of the kernel.

    Args:
        centring: symbol that `define_centring` returned.
    """
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    sizes = vars(read_parameters(function, slots, CentringParameters[SSAValue])).values()
    source, to = (function.pointer(slots, slot) for slot in (Slot.SOURCE, Slot.WORKSPACE))
    function.do(centring, source, to, *sizes, begin, end)
    function.finish()
    return name


@dataclass(frozen=True)
class _Centring:
    """Writer of the code of a row."""

    function: FunctionBuilder
    source: SSAValue
    result: SSAValue
    parameters: CentringParameters[SSAValue]
    is_signed: bool
    element: IntegerType | Float32Type

    def line(self, number: SSAValue) -> None:
        """Generates one row of the result: padding only, or pixels between padding."""
        function, it = self.function, self.parameters
        image, y = function.divmod(number, it.lines)
        row = function.subtract(y, it.top)
        size = function.multiply(it.pixels, it.filled)
        to = function.gep(self.result, function.multiply(number, size), self.element)
        # below 0 is a large number without a sign
        is_inside = function.compare("ult", row, it.height)

        def pixels() -> None:
            lines = function.add(function.multiply(image, it.height), row)
            line = function.multiply(function.multiply(lines, it.width), it.channels)
            before = function.multiply(it.left, it.filled)
            inner = function.multiply(it.width, it.filled)
            after = function.add(before, inner)
            self._zeros(to, before)
            self._pixels(
                function.gep(self.source, line, i8), function.gep(to, before, self.element)
            )
            self._zeros(function.gep(to, after, self.element), function.subtract(size, after))

        function.when(is_inside, pixels)
        is_outside = function.compare("uge", row, it.height)
        function.when(is_outside, lambda: self._zeros(to, size))

    def _pixels(self, source: SSAValue, to: SSAValue) -> None:
        function, it = self.function, self.parameters
        is_full = function.compare("eq", it.channels, it.filled)
        function.when(
            is_full, lambda: self._numbers(source, to, function.multiply(it.width, it.channels))
        )

        def filled(pixel: SSAValue) -> None:
            bytes_ = function.gep(source, function.multiply(pixel, it.channels), i8)
            place = function.gep(to, function.multiply(pixel, it.filled), self.element)
            self._numbers(bytes_, place, it.channels)
            unused = function.subtract(it.filled, it.channels)
            self._zeros(function.gep(place, it.channels, self.element), unused)

        is_short = function.compare("ne", it.channels, it.filled)
        function.when(is_short, lambda: function.loop(it.width, filled))

    def _numbers(self, source: SSAValue, to: SSAValue, count: SSAValue) -> None:
        """Converts `count` bytes: whole vectors, then the rest."""
        function = self.function
        vectors = function.divide(count, _LANES)
        done = function.multiply(vectors, _LANES)

        def vector(index: SSAValue) -> None:
            self._convert(source, to, function.multiply(index, _LANES), _LANES)

        def one(index: SSAValue) -> None:
            self._convert(source, to, function.add(done, index), 1)

        function.loop(vectors, vector, copies=_COPIES)
        function.loop(function.subtract(count, done), one)

    def _convert(self, source: SSAValue, to: SSAValue, place: SSAValue, lanes: int) -> None:
        function = self.function
        narrow, wide = (VectorType(one, [lanes]) for one in (i8, i16))
        bytes_ = function.load(function.gep(source, place, i8), narrow, 1)
        if self.element == i8:
            if self.is_signed:
                signs = function.constant(splat(SIGN - 256, narrow), narrow)
                bytes_ = function.binary(llvm.XOrOp, bytes_, signs)
            function.store(bytes_, function.gep(to, place, i8), 1)
            return
        extend = llvm.SExtOp if self.is_signed else llvm.ZExtOp
        numbers = function.insert(extend(bytes_, wide))
        zero = function.insert(llvm.TruncOp(self.parameters.zero_point, i16))
        centred = function.binary(llvm.SubOp, numbers, broadcast(function, zero, numbers))
        if self.element == f32:
            centred = function.insert(llvm.SIToFPOp(centred, VectorType(f32, [lanes])))
        function.store(centred, function.gep(to, place, self.element), self._bytes)

    def _zeros(self, to: SSAValue, count: SSAValue) -> None:
        function, zero = self.function, self._zero
        zeros = broadcast(function, zero, self._nothing)
        vectors = function.divide(count, _LANES)
        done = function.multiply(vectors, _LANES)

        def store(value: SSAValue, place: SSAValue) -> None:
            function.store(value, function.gep(to, place, self.element), self._bytes)

        function.loop(vectors, lambda at: store(zeros, function.multiply(at, _LANES)))
        function.loop(
            function.subtract(count, done), lambda at: store(zero, function.add(done, at))
        )

    @property
    def _nothing(self) -> SSAValue:
        """Returns a vector whose elements stand for 0."""
        if isinstance(self.element, Float32Type):
            return Vectors(self.function, _LANES).splat(0.0)
        type_ = VectorType(self.element, [_LANES])
        return self.function.constant(splat(0, type_), type_)

    @property
    def _zero(self) -> SSAValue:
        """Returns the element that stands for 0."""
        function = self.function
        if self.element == f32:
            return function.real(0.0)
        if self.element == i16:
            return function.integer(0, i16)
        shift = SIGN if self.is_signed else 0
        return function.insert(llvm.TruncOp(function.add(self.parameters.zero_point, shift), i8))

    @property
    def _bytes(self) -> int:
        return self.element.bitwidth // 8
