"""Matmuls of a region, in the terms of cuBLASLt.

cuBLASLt's matrices are column-major, ours row-major: a row-major matrix is the transpose of the
column-major matrix with the same memory. So the code computes `Dᵀ = Bᵀ · Aᵀ`: cuBLASLt's first
operand is our B, its rows are our units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.abi import COMPUTED_IN
from byoc_mlir.backends.gemm import Gemm, gemm_of, gemm_refused
from byoc_mlir.backends.region import source_of
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.nn import DenseOp, MatmulOp

_TYPES: dict[type[Attribute], int] = {Float32Type: 0, Float16Type: 2, BFloat16Type: 14}
"""`cudaDataType_t` of element types."""

_TF32 = StringAttr("tf32")

_COMPUTE_F32, _COMPUTE_TF32 = 68, 77
"""`cublasComputeType_t`: sums in `f32`, without rounded operands or with."""

_RELU, _BIAS, _GELU = 2, 4, 32
"""Parts of `cublasLtEpilogue_t`; GELU is the form with tanh."""

_NO_EPILOGUE = 1

_MOST_WORKSPACE = 32 << 20
_MOST_PARTS = 32
"""Assumed maximum number of parts of a sum, whose results are in the workspace."""


class Field(IntEnum):
    """Position in a `Matmul`'s words."""

    COMPUTE_TYPE = 0
    TRANSPOSES_B = 1
    TRANSPOSES_A = 2
    EPILOGUE = 3
    WORKSPACE = 4
    FIRST_LAYOUT = 5


class LayoutField(IntEnum):
    """Position in a matrix's words."""

    TYPE = 0
    ROWS = 1
    COLUMNS = 2
    COUNT = 3
    STRIDE = 4


@dataclass(frozen=True)
class Matmul:
    """One call of cuBLASLt, and its operands."""

    gemm: Gemm
    words: tuple[int, ...]
    """Parameters in the order of `Field`, then those of B, A and the result in the order of
    `LayoutField`."""
    a: SSAValue | Weight
    b: SSAValue | Weight
    bias: Weight | None

    @property
    def workspace_bytes(self) -> int:
        """Returns the bytes of workspace that an algorithm may use."""
        return self.words[Field.WORKSPACE]


def matmul_of(op: Operation) -> Matmul:
    """Returns the call for an op that `refused` accepts, or for a composite of the patterns."""
    anchor = anchor_of(op)
    gemm, (a, b) = gemm_of(anchor), (source_of(value, op) for value in anchor.operands)
    element = tensor_type(anchor.operands[0]).element_type
    result = tensor_type(op.results[0]).element_type
    bias, epilogue = None, _NO_EPILOGUE
    if isinstance(op, CompositeOp):
        parts = op.composite_name.data.rpartition(".")[2].split("_")
        bias = _bias(op, anchor, result) if "bias" in parts else None
        epilogue = _epilogue(parts)
    workspace = min(_MOST_WORKSPACE, _MOST_PARTS * 4 * gemm.count * gemm.rows * gemm.units)
    transpose_a, transpose_b = gemm.transposes
    words = (
        _COMPUTE_TF32 if anchor.attributes.get(COMPUTED_IN) == _TF32 else _COMPUTE_F32,
        int(transpose_b),
        int(transpose_a),
        epilogue,
        workspace,
        *_matrix(gemm, element, gemm.depth, gemm.units, transpose_b, gemm.shares[1]),
        *_matrix(gemm, element, gemm.rows, gemm.depth, transpose_a, gemm.shares[0]),
        *_matrix(gemm, result, gemm.rows, gemm.units, False, False),
    )
    return Matmul(gemm, words, a, b, bias)


def anchor_of(op: Operation) -> DenseOp | MatmulOp:
    """Returns the matmul of a composite, or the op itself."""
    if not isinstance(op, CompositeOp):
        assert isinstance(op, DenseOp | MatmulOp)
        return op
    return next(one for one in op.ops() if isinstance(one, DenseOp | MatmulOp))


def refused(op: Operation) -> str | None:
    """Accepts matmuls of `f32`, `f16` or `bf16`."""
    for value in (*op.operands, *op.results):
        if type(tensor_type(value).element_type) not in _TYPES:
            return f"only f32, f16 and bf16 are supported, found {value.type}"
    return gemm_refused(op)


def _matrix(
    gemm: Gemm, element: Attribute, rows: int, columns: int, transposed: bool, shared: bool
) -> Sequence[int]:
    """Returns the words of a matrix of `rows` and `columns`, which may be stored transposed."""
    stored = (rows, columns) if transposed else (columns, rows)
    stride = 0 if shared else rows * columns
    return (_TYPES[type(element)], *stored, gemm.count, stride)


def _epilogue(parts: Sequence[str]) -> int:
    numbers = {"bias": _BIAS, "relu": _RELU, "gelu": _GELU}
    return sum(numbers.get(part, 0) for part in parts)


def _bias(op: CompositeOp, anchor: Operation, result: Attribute) -> Weight:
    """Returns a composite's bias as a vector of the result's type, which cuBLASLt requires."""
    (adding,) = (use.operation for use in anchor.results[0].uses)
    other = next(value for value in adding.operands if value is not anchor.results[0])
    source = source_of(other, op)
    assert isinstance(source, Weight)
    return Weight.of(source.name, source.data.reshape(-1).astype(numpy_dtype(result)))
