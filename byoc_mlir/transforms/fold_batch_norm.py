"""The pass `fold-batch-norm`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.base import rank_of, sizes_of, tensor_type
from byoc_mlir.dialects.relay.constant import derived_array
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.elementwise import AddOp, MultiplyOp, SubtractOp
from byoc_mlir.dialects.relay.nn import BatchNormOp, BiasAddOp, DenseOp
from byoc_mlir.dialects.relay.window import ConvOp, ConvTransposeOp
from byoc_mlir.dims import Dim, Size
from byoc_mlir.limits import in_time
from byoc_mlir.tensors import aligned_empty
from byoc_mlir.transforms.rewriting import (
    Array,
    constant_array,
    constant_name,
    erase_dead_ops,
    erase_if_dead,
    replace_op,
)

Linear: TypeAlias = ConvOp | ConvTransposeOp | DenseOp


@dataclass(frozen=True)
class Affine:
    """Affine map `data * scale + shift` for every channel along `axis`, in double precision."""

    data: SSAValue
    axis: int
    scale: Array
    shift: Array


class FoldBatchNorm(ModulePass):
    """Folds batch norm into the convolution, transposed convolution or dense layer before it.

    ```mlir
    %0 = relay.nn.conv2d %x, %w : …
    %1, %2, %3 = relay.nn.batch_norm %0, %gamma, %beta, %mean, %var : …
    // becomes, with s = gamma / sqrt(var + epsilon)
    %0 = relay.nn.conv2d %x, %w_times_s : …
    %1 = relay.nn.bias_add %0, %beta_minus_mean_times_s {axis = 1} : …
    ```

    A `bias_add` may stand between the two ops. A multiplication or addition with one constant per
    channel folds as well; after a batch norm that stays, it folds into the batch norm. The pass
    folds only if the constants are known, the results are finite, and no other op uses the
    intermediate value.
    """

    name = "fold-batch-norm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in host_blocks(op):
            for candidate in in_time(block.ops):
                affine = _affine(candidate)
                if affine is not None and affine.data.has_one_use():
                    with np.errstate(all="ignore"):
                        _fold(candidate, affine)
            erase_dead_ops(block)


def _affine(op: Operation) -> Affine | None:
    if isinstance(op, BatchNormOp):
        return _affine_of_batch_norm(op)
    if isinstance(op, AddOp | SubtractOp | MultiplyOp):
        return _affine_of_binary(op)
    return None


def _affine_of_batch_norm(op: BatchNormOp) -> Affine | None:
    parameters = [constant_array(value) for value in op.operands[1:]]
    known = [np.asarray(array, np.float64) for array in parameters if array is not None]
    if len(known) < 4:
        return None
    gamma, beta, mean, variance = known
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + op.epsilon.value.data)
        return Affine(op.data, op.positive_axis, scale, beta - mean * scale)


def _affine_of_binary(op: AddOp | SubtractOp | MultiplyOp) -> Affine | None:
    data, array = op.lhs, constant_array(op.rhs)
    if array is None and not isinstance(op, SubtractOp):
        data, array = op.rhs, constant_array(op.lhs)
    axis = _channel_axis(data)
    if array is None or axis is None or data.type != op.output.type or array.dtype.kind in "iub":
        return None
    vector = _per_channel(np.asarray(array, np.float64), sizes_of(data), axis)
    if vector is None:
        return None
    if isinstance(op, MultiplyOp):
        return Affine(data, axis, vector, np.zeros_like(vector))
    shift = -vector if isinstance(op, SubtractOp) else vector
    return Affine(data, axis, np.ones_like(vector), shift)


def _per_channel(array: Array, shape: Sequence[Size], axis: int) -> Array | None:
    """Returns one value per channel, or `None` if `array` varies along other axes of `shape`."""
    full = (1,) * (len(shape) - array.ndim) + array.shape
    channels = shape[axis]
    if isinstance(channels, Dim) or any(size != 1 and at != axis for at, size in enumerate(full)):
        return None
    return np.broadcast_to(array.reshape(-1), (channels,))


def _channel_axis(value: SSAValue) -> int | None:
    """Returns the channel axis of the result of an op that can absorb a factor per channel."""
    match value.owner:
        case ConvOp() | ConvTransposeOp():
            return 1
        case DenseOp():
            return rank_of(value) - 1
        case BiasAddOp() as op:
            return op.positive_axis
        case BatchNormOp() as op if value is op.output:
            return op.positive_axis
        case _:
            return None


def _fold(op: Operation, affine: Affine) -> None:
    before = affine.data.owner
    if isinstance(before, BatchNormOp):
        _fold_into_batch_norm(op, affine, before)
    elif isinstance(before, BiasAddOp):
        bias = constant_array(before.bias)
        if bias is not None and before.data.has_one_use():
            _fold_into_linear(op, affine, before.data.owner, [before], bias)
    else:
        _fold_into_linear(op, affine, before, [], np.zeros(()))


def _fold_into_batch_norm(op: Operation, affine: Affine, before: BatchNormOp) -> None:
    gamma, beta = constant_array(before.gamma), constant_array(before.beta)
    if gamma is None or beta is None or affine.axis != before.positive_axis:
        return
    new_gamma = _constant(before, "gamma", gamma * affine.scale, gamma.dtype)
    new_beta = _constant(before, "beta", beta * affine.scale + affine.shift, beta.dtype)
    if new_gamma is None or new_beta is None:
        return
    merged = BatchNormOp(
        before.data,
        new_gamma,
        new_beta,
        before.moving_mean,
        before.moving_var,
        axis=before.axis,
        epsilon=before.epsilon,
    )
    merged.location = fused_location([before, op])
    replace_op(op, [new_gamma, new_beta, merged], _results(op, merged.output))
    erase_if_dead(before)


def _fold_into_linear(
    op: Operation, affine: Affine, linear: Operation | Block, biases: list[BiasAddOp], bias: Array
) -> None:
    if not isinstance(linear, Linear) or _channel_axis(linear.output) != affine.axis:
        return
    new_bias = _constant(
        biases[0] if biases else linear,
        "bias",
        np.broadcast_to(bias * affine.scale + affine.shift, affine.shift.shape),
        numpy_dtype(tensor_type(linear.weight).element_type),
    )
    if new_bias is None or not _scale_weight(linear, affine.scale):
        return
    bias_add = BiasAddOp(linear.output, new_bias, axis=affine.axis)
    bias_add.location = fused_location([*biases, op])
    replace_op(op, [new_bias, bias_add], _results(op, bias_add.output))
    for old in biases:
        erase_if_dead(old)


def _results(op: Operation, output: SSAValue) -> list[SSAValue]:
    """Returns the values that replace the results of `op`: `output`, and the unchanged statistics
    of a batch norm.
    """
    return [output, op.moving_mean, op.moving_var] if isinstance(op, BatchNormOp) else [output]


def _scale_weight(linear: Linear, scale: Array) -> bool:
    """Multiplies every output channel of the weight; returns `False`, without a change, if that is
    impossible.
    """
    if (scale == 1.0).all():
        return True
    weight = constant_array(linear.weight)
    if weight is None:
        return False
    groups = linear.groups.value.data if isinstance(linear, ConvTransposeOp) else None
    product = derived_array(
        ("scaled channels", groups), (weight, scale), lambda: scaled(weight, scale, groups)
    )
    constant = _constant(linear, "weight", product, weight.dtype)
    block = linear.parent
    if constant is None or block is None:
        return False
    block.insert_op_before(constant, linear)
    replaced = linear.weight.owner
    linear.operands[1] = constant.output
    if isinstance(replaced, ConstantOp):
        erase_if_dead(replaced)
    return True


def scaled(weight: Array, scale: Array, groups: int | None) -> Array:
    """Returns a weight with every output channel multiplied, in the weight's type.

    Args:
        groups: number of groups of a transposed convolution; in its weight, the groups' axis is
            before the output channels.
    """
    trailing = [1] * (weight.ndim - 2)
    grouped = weight if groups is None else weight.reshape(groups, -1, *weight.shape[1:])
    leading = (-1, 1) if groups is None else (groups, 1, -1)
    product = aligned_empty(grouped.shape, grouped.dtype)
    # rounds piece by piece, without a whole product in f64
    np.multiply(grouped, scale.reshape(*leading, *trailing), out=product, casting="unsafe")
    return product.reshape(weight.shape)


def _constant(op: RelayOp, what: str, array: Array, dtype: np.dtype[Any]) -> ConstantOp | None:
    """Returns a constant of `array`, named after a constant of `op`; `None` if an element is not
    finite in its type.
    """
    rounded = array.astype(dtype, copy=False)
    if not np.isfinite(rounded).all():
        return None
    constant = ConstantOp.of(f"{constant_name(op, op.name)}.{what}", rounded)
    constant.output.name_hint = what
    return constant
