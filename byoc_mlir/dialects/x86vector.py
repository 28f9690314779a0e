"""Ops of MLIR's dialect `x86vector` that xDSL lacks, under their upstream names.

Documentation: https://mlir.llvm.org/docs/Dialects/X86Vector/
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import VectorType, bf16, f32
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class DotBF16Op(IRDLOperation):
    """Dot product of `bf16` pairs, added to `f32` sums.

    `dst[i] = src[i] + a[2i] * b[2i] + a[2i + 1] * b[2i + 1]`
    """

    SUMS: ClassVar = VarConstraint("SUMS", BaseAttr(VectorType))
    PAIRS: ClassVar = VarConstraint("PAIRS", BaseAttr(VectorType))

    name = "x86vector.avx512.dot"
    src = operand_def(SUMS)
    a = operand_def(PAIRS)
    b = operand_def(PAIRS)
    dst = result_def(SUMS)
    traits = traits_def(Pure())
    assembly_format = "$src `,` $a `,` $b attr-dict `:` type($a) `->` type($src)"

    def __init__(self, src: SSAValue, a: SSAValue, b: SSAValue):
        super().__init__(operands=[src, a, b], result_types=[src.type])

    def verify_(self) -> None:
        src = self.src.type
        assert isinstance(src, VectorType)
        pairs = VectorType(bf16, [2 * size for size in src.get_shape()])
        if src.element_type != f32 or self.a.type != pairs:
            raise VerifyException(
                f"{self.name}: expected f32 and twice as many bf16, found {src} and {self.a.type}"
            )


X86VECTOR = Dialect("x86vector", [DotBF16Op])
