"""What an integer product does with its sums on their way to memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, VectorType, i32
from xdsl.ir import Operation, SSAValue

from byoc_mlir.dims import Size
from byoc_mlir.kernels.builder import FunctionBuilder
from byoc_mlir.kernels.epilogue import float_bits
from byoc_mlir.kernels.integer_gemm.narrowing import Narrowing, Rounding, Saturating, limited
from byoc_mlir.kernels.integer_gemm.parameters import BytesParameters, ResidualParameters
from byoc_mlir.kernels.ops import float_arithmetic
from byoc_mlir.kernels.vectors import Vectors

Kind = Literal["sums", "numbers", "bytes"]

_EXACT = llvm.FastMathAttr(None)

_SIZES = {"sums": 4, "numbers": 4, "bytes": 1}


@dataclass(frozen=True)
class ByteResidual:
    """Bytes that are added to a result: `(limited(number) + byte) * factor + shift`."""

    is_signed: bool
    lower: float
    upper: float
    """Where the numbers are cut before anything is added."""
    factor: float
    shift: float


@dataclass(frozen=True)
class IntegerEpilogue:
    """What becomes of the sums, to each of which the number of its column was added.

    `sums` stay `i32`; `numbers` are `sum * scale`, in `f32`, with an offset where there is one;
    `bytes` are `round(number) + zero_point` between two limits, of numbers to which a residual was
    added where there is one. There is a scale, and an offset, for each column.
    """

    kind: Kind = "sums"
    offset: bool = False
    zero_point: int = 0
    lower: int = 0
    upper: int = 255
    residual: ByteResidual | None = None

    @property
    def suffix(self) -> str:
        """What tells code apart."""
        signs = "" if self.residual is None else "i8" if self.residual.is_signed else "u8"
        return self.kind + "_offset" * self.offset + "_plus_" * bool(signs) + signs

    def parameters(self) -> BytesParameters[Size]:
        """What the code is told."""
        it = self.residual or ByteResidual(False, 0, 0, 0, 0)
        bits = map(float_bits, (it.lower, it.upper, it.factor, it.shift))
        return BytesParameters(
            self.zero_point, self.lower, self.upper, ResidualParameters[Size](*bits)
        )

    @property
    def element_bytes(self) -> int:
        """Those of an element of the result."""
        return _SIZES[self.kind]


Finished: TypeAlias = "tuple[SSAValue, SSAValue | None, SSAValue | None, SSAValue | None]"
"""A vector of sums, integers or the `f32` of them, and three of the same columns: of scales (`None`
for sums that stay what they are), of offsets and of bytes that are added, where there are such."""


@dataclass(frozen=True)
class Finish:
    """Writes what follows the sums."""

    function: FunctionBuilder
    lanes: int
    epilogue: IntegerEpilogue
    narrowing: Narrowing
    residual: Sequence[SSAValue]
    """Vectors of the fields of `ByteResidual`; none where nothing is added."""

    @staticmethod
    def told(
        function: FunctionBuilder,
        lanes: int,
        epilogue: IntegerEpilogue,
        parameters: BytesParameters[SSAValue],
        *,
        narrows: bool = False,
    ) -> Finish:
        """What a kernel is told in its parameters is read here, once for all sums.

        Args:
            narrows: whether the instructions of `Saturating` are there.
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
        """Vectors of the result, next to each other in memory: bytes are as few as can be."""
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
            total = self._insert(llvm.SIToFPOp(total, vectors.type))
        number = self._multiplied(total, scale)
        if offset is not None:
            number = self._added(number, offset)
        return number if residual is None else self._with_residual(number, residual)

    def _with_residual(self, number: SSAValue, residual: SSAValue) -> SSAValue:
        assert self.epilogue.residual is not None
        extend = llvm.SExtOp if self.epilogue.residual.is_signed else llvm.ZExtOp
        byte = self._insert(extend(residual, self._vector(i32)))
        lower, upper, factor, shift = self.residual
        within = limited(self.function, number, lower, upper)
        total = self._added(within, self._insert(llvm.SIToFPOp(byte, number.type)))
        return self._added(self._multiplied(total, factor), shift)

    def _vector(self, element: IntegerType) -> VectorType[IntegerType]:
        return VectorType(element, [self.lanes])

    def _multiplied(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._insert(float_arithmetic(llvm.FMulOp, lhs, rhs, _EXACT))

    def _added(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._insert(float_arithmetic(llvm.FAddOp, lhs, rhs, _EXACT))

    def _insert(self, op: Operation) -> SSAValue:
        return self.function.insert(op)
