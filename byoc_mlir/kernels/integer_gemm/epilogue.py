"""Epilogues of integer GEMMs, applied to the sums before they are stored.

Two strategies clamp values to two limits and narrow them to bytes: one for any processor, one for
AVX2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float32Type, IntegerType, f32, i8, i16, i32
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dims import Size
from byoc_mlir.kernels.builder import FunctionBuilder
from byoc_mlir.kernels.epilogue import float_bits
from byoc_mlir.kernels.integer_gemm.parameters import BytesParameters, ResidualParameters
from byoc_mlir.kernels.ops import float_arithmetic, unary, vector_type
from byoc_mlir.kernels.vectors import Vectors, broadcast, joined, shuffled

_EXACT = llvm.FastMathAttr(None)
_NO_NANS = llvm.FastMathAttr([FastMathFlag.NO_NANS, FastMathFlag.NO_SIGNED_ZEROS])
_ROUNDING = 1.5 * 2.0**23
"""Magic number: added to a value below 2^22 in magnitude, it rounds off the fraction."""

AVX2_LANES = 8
"""Lanes of the vectors that AVX2 narrows."""

_HALF, _FOURTH = 16, 4
"""Bytes of half a vector, and bytes in it that come from one vector of values."""

_ROUND = "llvm.x86.avx.cvt.ps2dq.256"
_TO_WORDS = "llvm.x86.avx2.packssdw"
_TO_BYTES = {16: "llvm.x86.sse2.packuswb.128", 32: "llvm.x86.avx2.packuswb"}
"""Narrowing intrinsics by the number of result bytes."""


@dataclass(frozen=True)
class Rounding:
    """Narrowing by `f32` arithmetic, for any processor."""

    function: FunctionBuilder
    lanes: int
    lower: SSAValue
    upper: SSAValue
    """Upper limit minus the zero point, in all lanes; `lower` is the lower limit minus the zero
    point."""
    zero_point: SSAValue
    most = 2
    """Number of vectors that are narrowed together at the lowest cost."""

    @staticmethod
    def told(
        function: FunctionBuilder, lanes: int, parameters: BytesParameters[SSAValue]
    ) -> Rounding:
        """Returns the narrowing for the limits that a kernel's parameters contain."""
        return Rounding(
            function,
            lanes,
            _limit(function, lanes, parameters, parameters.lower),
            _limit(function, lanes, parameters, parameters.upper),
            function.insert(llvm.TruncOp(parameters.zero_point, i8)),
        )

    def of(self, numbers: Sequence[SSAValue]) -> SSAValue:
        """Narrows one or two vectors of `f32` to one vector of bytes."""
        function, rounding = self.function, Vectors(self.function, self.lanes).splat(_ROUNDING)
        words: list[SSAValue] = []
        for number in numbers:
            within = limited(function, number, self.lower, self.upper)
            # the lowest bits of the sum are the integer, rounded to the nearest, halves to even
            rounded = function.insert(float_arithmetic(llvm.FAddOp, within, rounding, _EXACT))
            words.append(
                function.insert(unary(llvm.BitcastOp, rounded, vector_type(i32, self.lanes)))
            )
        whole, lanes = joined(function, words), self.lanes * len(numbers)
        bytes_ = function.insert(unary(llvm.TruncOp, whole, vector_type(i8, lanes)))
        return _added(function, bytes_, self.zero_point)


@dataclass(frozen=True)
class Saturating:
    """Narrowing by AVX2 instructions that round and saturate.

    Values are taken relative to the lower limit, so values below it saturate to 0.
    """

    function: FunctionBuilder
    upper: SSAValue
    """Upper limit minus the zero point, in all lanes."""
    distance: SSAValue
    """Distance from the lower limit to the zero point."""
    lowest: SSAValue
    most = 4
    """As in `Rounding`."""

    @staticmethod
    def told(function: FunctionBuilder, parameters: BytesParameters[SSAValue]) -> Saturating:
        """Returns the narrowing for the limits that a kernel's parameters contain."""
        distance = function.subtract(parameters.zero_point, parameters.lower)
        return Saturating(
            function,
            _limit(function, AVX2_LANES, parameters, parameters.upper),
            function.insert(llvm.TruncOp(distance, i16)),
            function.insert(llvm.TruncOp(parameters.lower, i8)),
        )

    def of(self, numbers: Sequence[SSAValue]) -> SSAValue:
        """Narrows one, two or four vectors of `f32` to one vector of bytes."""
        integers = [self._rounded(number) for number in numbers]
        if len(integers) == 1:
            integers *= 2
        words = [self._words(*integers[at : at + 2]) for at in range(0, len(integers), 2)]
        if len(words) == 1:  # use its lower and its upper half
            (both,) = words
            words = [shuffled(self.function, both, both, range(at, at + 8)) for at in (0, 8)]
        size = _HALF * len(integers) // 2
        bytes_ = self.function.call_intrinsic(_TO_BYTES[size], words, vector_type(i8, size))
        ordered = shuffled(self.function, bytes_, bytes_, _order(len(numbers), size // 2))
        return _added(self.function, ordered, self.lowest)

    def _rounded(self, number: SSAValue) -> SSAValue:
        """Clamps to the upper limit and rounds, ties to even.

        Values below the range of `i32` become its minimum.
        """
        within = _extreme(self.function, llvm.VectorFMinOp, number, self.upper)
        return self.function.call_intrinsic(_ROUND, [within], vector_type(i32, AVX2_LANES))

    def _words(self, one: SSAValue, other: SSAValue) -> SSAValue:
        """Packs two vectors to 16-bit values relative to the lower limit.

        The result holds the first halves of both vectors, then their second halves.
        """
        type_ = vector_type(i16, 2 * AVX2_LANES)
        words = self.function.call_intrinsic(_TO_WORDS, [one, other], type_)
        distances = broadcast(self.function, self.distance, words)
        return self.function.call_intrinsic(
            f"llvm.sadd.sat.v{2 * AVX2_LANES}i16", [words, distances], type_
        )


def _order(vectors: int, half: int) -> list[int]:
    """Returns the vector positions of the bytes after narrowing.

    A fourth of each 16 bytes comes from each vector, in each of the two halves.
    """
    return [
        first + byte
        for vector in range(vectors)
        for first in (_FOURTH * vector, half + _FOURTH * vector)
        for byte in range(_FOURTH)
    ]


def limited(
    function: FunctionBuilder, number: SSAValue, lower: SSAValue, upper: SSAValue
) -> SSAValue:
    """Clamps values to two limits."""
    above = _extreme(function, llvm.VectorFMaxOp, number, lower)
    return _extreme(function, llvm.VectorFMinOp, above, upper)


def _extreme(
    function: FunctionBuilder,
    op: type[llvm.VectorFMaxOp | llvm.VectorFMinOp],
    lhs: SSAValue,
    rhs: SSAValue,
) -> SSAValue:
    """Returns the lane-wise maximum or minimum of two vectors."""
    properties: dict[str, Attribute] = {"fastmathFlags": _NO_NANS}
    return function.insert(
        op.create(operands=[lhs, rhs], result_types=[lhs.type], properties=properties)
    )


def _limit(
    function: FunctionBuilder,
    lanes: int,
    parameters: BytesParameters[SSAValue],
    limit: SSAValue,
) -> SSAValue:
    number = function.subtract(limit, parameters.zero_point)
    return Vectors(function, lanes).broadcast(function.insert(llvm.SIToFPOp(number, f32)))


def _added(function: FunctionBuilder, bytes_: SSAValue, byte: SSAValue) -> SSAValue:
    return function.binary(llvm.AddOp, bytes_, broadcast(function, byte, bytes_))


Kind = Literal["sums", "numbers", "bytes"]


_ELEMENTS = {"sums": i32, "numbers": f32, "bytes": i8}


@dataclass(frozen=True)
class ByteResidual:
    """Bytes of a residual that is added to a result: `(limited(number) + byte) * factor +
    shift`.
    """

    is_signed: bool
    lower: float
    upper: float
    """Upper limit of the values before the residual is added; `lower` is the lower limit."""
    factor: float
    shift: float


@dataclass(frozen=True)
class IntegerEpilogue:
    """Epilogue of the sums, which include per-column initial values.

    The results are of one of three kinds: `sums` in `i32`; `numbers`, that is, `sum * scale` in
    `f32` plus an optional offset; `bytes`, that is, `round(number) + zero_point` clamped to two
    limits. For `bytes`, an optional residual is added to the number. Scale and offset are per
    column.
    """

    kind: Kind = "sums"
    offset: bool = False
    zero_point: int = 0
    lower: int = 0
    upper: int = 255
    residual: ByteResidual | None = None

    @property
    def suffix(self) -> str:
        """Returns a symbol suffix that distinguishes epilogues."""
        signs = "" if self.residual is None else "i8" if self.residual.is_signed else "u8"
        return self.kind + "_offset" * self.offset + "_plus_" * bool(signs) + signs

    def parameters(self) -> BytesParameters[Size]:
        """Returns the parameters of the code."""
        it = self.residual or ByteResidual(False, 0, 0, 0, 0)
        bits = map(float_bits, (it.lower, it.upper, it.factor, it.shift))
        return BytesParameters(
            self.zero_point, self.lower, self.upper, ResidualParameters[Size](*bits)
        )

    @property
    def element(self) -> IntegerType | Float32Type:
        """Returns the type of the result's elements."""
        return _ELEMENTS[self.kind]


Finished: TypeAlias = "tuple[SSAValue, SSAValue | None, SSAValue | None, SSAValue | None]"
"""Vector of sums, `i32` or converted to `f32`, with vectors of the same columns: scales (`None`
leaves sums unchanged), offsets, and residual bytes, or `None` if absent."""


@dataclass(frozen=True)
class Finish:
    """Writer of the epilogue's code."""

    function: FunctionBuilder
    lanes: int
    epilogue: IntegerEpilogue
    narrowing: Rounding | Saturating
    residual: Sequence[SSAValue]
    """Vectors of the fields of `ByteResidual`; empty without a residual."""

    @staticmethod
    def told(
        function: FunctionBuilder,
        lanes: int,
        epilogue: IntegerEpilogue,
        parameters: BytesParameters[SSAValue],
        *,
        narrows: bool = False,
    ) -> Finish:
        """Generates the loads of the parameters, once for all sums.

        Args:
            narrows: True if the processor has the instructions of `Saturating`.
        """
        vectors, it = Vectors(function, lanes), parameters.residual
        bits = (it.lower, it.upper, it.factor, it.shift)
        return Finish(
            function,
            lanes,
            epilogue,
            Saturating.told(function, parameters)
            if narrows
            else Rounding.told(function, lanes, parameters),
            [] if epilogue.residual is None else [vectors.broadcast_bits(one) for one in bits],
        )

    def of(self, vectors: Sequence[Finished]) -> Sequence[SSAValue]:
        """Applies the epilogue to vectors of sums; returns consecutive vectors to store, as few as
        possible.
        """
        numbers = [self._number(*vector) for vector in vectors]
        if self.epilogue.kind != "bytes":
            return numbers
        whole = 1 << len(numbers).bit_length() - 1
        return [self.narrowing.of(some) for some in (numbers[:whole], numbers[whole:]) if some]

    def _number(
        self,
        total: SSAValue,
        scale: SSAValue | None,
        offset: SSAValue | None,
        residual: SSAValue | None,
    ) -> SSAValue:
        if scale is None:
            return total
        vectors = Vectors(self.function, self.lanes)
        if total.type != vectors.type:
            total = self.function.insert(llvm.SIToFPOp(total, vectors.type))
        number = self._multiplied(total, scale)
        if offset is not None:
            number = self._added(number, offset)
        return number if residual is None else self._with_residual(number, residual)

    def _with_residual(self, number: SSAValue, residual: SSAValue) -> SSAValue:
        assert self.epilogue.residual is not None
        function = self.function
        extend = llvm.SExtOp if self.epilogue.residual.is_signed else llvm.ZExtOp
        byte = function.insert(extend(residual, vector_type(i32, self.lanes)))
        lower, upper, factor, shift = self.residual
        within = limited(function, number, lower, upper)
        total = self._added(within, function.insert(llvm.SIToFPOp(byte, number.type)))
        return self._added(self._multiplied(total, factor), shift)

    def _multiplied(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self.function.insert(float_arithmetic(llvm.FMulOp, lhs, rhs, _EXACT))

    def _added(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self.function.insert(float_arithmetic(llvm.FAddOp, lhs, rhs, _EXACT))
