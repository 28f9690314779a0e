"""Dense layers and normalisations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from byoc_mlir.dialects.relay import nn as relay
from byoc_mlir.dialects.relay.base import (
    Tensor,
    rank_of,
    sizes_of,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.lowering.relay_to_linalg import reduce
from byoc_mlir.lowering.relay_to_linalg.builder import (
    LinalgBuilder,
    Lowerings,
    Read,
    dim,
    dims,
    is_one,
)
from byoc_mlir.lowering.relay_to_linalg.computed_types import accumulator_type
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars, power


def multiply_add(s: Scalars, x: SSAValue, y: SSAValue, total: SSAValue) -> SSAValue:
    """Emits `total + x * y`, in the type of the total."""
    product = s.mul(s.cast(x, x.type, total.type), s.cast(y, y.type, total.type))
    return s.add(total, product)


def contract(
    b: LinalgBuilder,
    reads: Sequence[Read],
    type_: Tensor,
    output: Sequence[AffineExpr],
    reduced: Sequence[int],
    rank: int,
) -> SSAValue:
    """Inserts the sum of products of the inputs over the dimensions `reduced`, as a tensor of
    `type_`.
    """
    wide = tensor_of(accumulator_type(type_.element_type), type_sizes(type_))
    zero = b.filled(0, wide)
    summed = b.reduce(reads, zero, output, reduced, rank, multiply_add)
    return b.cast(summed, type_.element_type)


def _lower_dense(op: relay.DenseOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    rank = rank_of(op.output)
    rows = dims(range(rank - 1))
    reads = [Read(op.data, (*rows, dim(rank))), Read(op.weight, dims((rank - 1, rank)))]
    output = tensor_type(op.output)
    return [contract(b, reads, output, dims(range(rank)), [rank], rank + 1)]


def _lower_matmul(op: relay.MatmulOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    output = tensor_type(op.output)
    rank = rank_of(op.output)
    m, n, k = rank - 2, rank - 1, rank
    reads = [
        _matrix(op.a, output, (k, m) if op.transpose_a.value.data else (m, k)),
        _matrix(op.b, output, (n, k) if op.transpose_b.value.data else (k, n)),
    ]
    return [contract(b, reads, output, dims(range(rank)), [k], rank + 1)]


def _matrix(value: SSAValue, output: Tensor, last: tuple[int, int]) -> Read:
    """Returns the input for a batch of matrices, with leading dimensions broadcast to the
    output's.
    """
    shape = sizes_of(value)
    first = len(output.shape) - len(shape)
    batch = [
        AffineConstantExpr(0) if is_one(size) else dim(first + axis)
        for axis, size in enumerate(shape[:-2])
    ]
    return Read(value, (*batch, *dims(last)))


def _lower_layer_norm(op: relay.LayerNormOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    output = tensor_type(op.output)
    axes = range(op.positive_axis, rank_of(op.output))
    wide = accumulator_type(output.element_type)
    data, gamma, beta = (b.cast(value, wide) for value in (op.data, op.gamma, op.beta))
    type_ = tensor_type(data)
    average = reduce.mean(b, data, axes)
    centred = b.elementwise([data, average], type_, lambda s, x, m: s.sub(x, m))
    squares = b.elementwise([centred], type_, lambda s, x: s.mul(x, x))
    variance = reduce.mean(b, squares, axes)
    epsilon = op.epsilon.value.data
    factor = b.elementwise(
        [variance],
        tensor_type(variance),
        lambda s, x: s.unary(math.RsqrtOp, s.add(x, s.like(epsilon, x))),
    )
    result = b.elementwise(
        [centred, factor, gamma, beta],
        type_,
        lambda s, x, f, g, o: s.add(s.mul(s.mul(x, f), g), o),
    )
    return [b.cast(result, output.element_type)]


def _lower_lrn(op: relay.LrnOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    output = tensor_type(op.output)
    shape, rank = sizes_of(op.output), rank_of(op.output)
    axis, size = op.axis.value.data % rank, op.size.value.data
    data = b.cast(op.data, accumulator_type(output.element_type))
    type_ = tensor_type(data)
    squares = b.elementwise([data], type_, lambda s, x: s.mul(x, x))
    padded_shape = [extent + size - 1 if d == axis else extent for d, extent in enumerate(shape)]
    offsets = [(size - 1) // 2 if d == axis else 0 for d in range(rank)]
    padded = b.insert(squares, b.filled(0, tensor_of(type_.element_type, padded_shape)), offsets)
    exprs = [dim(d) + dim(rank) if d == axis else dim(d) for d in range(rank)]
    summed = b.reduce(
        [Read(padded, exprs), window(b, [size], first=rank)],
        b.filled(0, type_),
        dims(range(rank)),
        [rank],
        rank + 1,
        lambda s, x, _, total: s.add(total, x),
    )
    alpha, bias, beta = op.alpha.value.data / size, op.bias.value.data, op.beta.value.data

    def body(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
        base = s.add(s.like(bias, y), s.mul(s.like(alpha, y), y))
        return s.div(x, _power(s, base, beta))

    return [b.cast(b.elementwise([data, summed], type_, body), output.element_type)]


def _power(s: Scalars, base: SSAValue, exponent: float) -> SSAValue:
    """Emits `base ** exponent`, with square roots for the exponents that are usual in models."""
    if exponent == 1.0:
        return base
    root = s.unary(math.SqrtOp, base)
    if exponent == 0.5:
        return root
    if exponent == 0.75:
        return s.mul(root, s.unary(math.SqrtOp, root))
    return power(s, base, s.like(exponent, base))


def window(b: LinalgBuilder, sizes: Sequence[int], first: int) -> Read:
    """Returns an empty tensor that determines the sizes of the loop dimensions from `first` on."""
    return Read(b.empty(TensorType(i1, sizes)), dims(range(first, first + len(sizes))))


FUNCTIONS: Lowerings = {
    relay.DenseOp: _lower_dense,
    relay.MatmulOp: _lower_matmul,
    relay.LayerNormOp: _lower_layer_norm,
    relay.LrnOp: _lower_lrn,
}
