"""The pass `split-products`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnknownLoc, f32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from byoc_mlir.abi import COMPUTED_IN
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay import RelayOp, elementwise, logic, nn, transform, window
from byoc_mlir.dialects.relay.base import rank_of, sizes_of
from byoc_mlir.transforms.blocks import is_node, partitioned_blocks
from byoc_mlir.transforms.kept_float import keep_float
from byoc_mlir.transforms.op_sequence import OpSequence
from byoc_mlir.transforms.profitability import ProfitableGemm, ProfitableGemms
from byoc_mlir.transforms.rewriting import erase_if_dead, place_after

PRECISION_NAME = "bf16x3"

_LARGEST = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
"""Maximum magnitude of a high part, so that rounding never makes it infinite."""

_LARGEST_REST = float((1 - 2**-8) * 2.0**120)
"""Maximum magnitude of a low part: added to `_LARGEST` it still fits in `f32`."""


@dataclass(frozen=True)
class SplitProducts(ModulePass):
    """Splits `f32` matmuls and convolutions into `bf16` ones with sums three times as long.

    The pass splits ops that a backend computes faster so. Each value becomes a high part, rounded
    to `bf16`, and a low part, the rounded rest: together they keep 16 of 24 bits. The product of
    the two low parts is omitted. One `bf16` op sums the other three products: its operands hold the
    parts side by side, `high, high, low` of the data and `high, low, high` of the weights.

    Infinities and NaNs are in one high part only; the other parts are 0. So the result has an
    infinity or NaN only if the `f32` result has one.

    Runs between `merge-composite` and `annotate-target`. Other ops in a composite with such a
    matmul or convolution are computed in `f32`, as before.

    Options:
        targets: backends that report what they compute faster.
        exact: names of nodes whose products stay in `f32`.

    ```mlir
    %0 = relay.nn.dense %x, %w : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x2xf32>
    // becomes
    %d = relay.concatenate %x_high, %x_bounded, %x_low {axis = 1} : … -> tensor<4x24xbf16>
    %v = relay.concatenate %w_high, %w_low, %w_bounded {axis = 1} : … -> tensor<2x24xbf16>
    %0 = relay.nn.dense %d, %v {out_dtype = f32} : … -> tensor<4x2xf32>
    ```
    """

    name = "split-products"

    targets: tuple[str, ...]
    exact: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gains = ProfitableGemms(PRECISION_NAME, self.targets, self.exact)
        for block in partitioned_blocks(op):
            _split_block(block, gains)
        keep_float(op, gains.kept_float)


def _split_block(block: Block, gains: ProfitableGemms) -> None:
    splitter = _ValueSplitter()
    for op in [one for one in block.ops if is_node(one)]:
        product = gains.product(op)
        if product is not None:
            _lengthen(op, product, splitter)


def _lengthen(op: Operation, product: ProfitableGemm, splitter: _ValueSplitter) -> None:
    """Replaces a product's operands by their parts, in the block or in a composite."""
    inner = product.op
    places = _places(inner)
    joined = [
        splitter.joined(op.operands[index], place)
        for index, place in zip(product.operands, places, strict=True)
    ]
    if isinstance(op, CompositeOp):
        joined = _arguments(op, joined)
    for index, value in enumerate(joined):
        inner.operands[index] = value
    if isinstance(op, CompositeOp):
        _drop_unused(op)
    inner.properties["out_dtype"] = f32
    inner.attributes[COMPUTED_IN] = StringAttr(PRECISION_NAME)


def _arguments(op: CompositeOp, values: Sequence[SSAValue]) -> list[SSAValue]:
    """Adds operands to a composite; returns the new arguments of its body."""
    block = op.body.block
    op.operands = [*op.operands, *values]
    return [block.insert_arg(value.type, len(block.args)) for value in values]


def _drop_unused(op: CompositeOp) -> None:
    """Removes the operands of a composite that its body does not use."""
    block, operands = op.body.block, list(op.operands)
    for argument in reversed(block.args):
        if argument.first_use is None:
            del operands[argument.index]
            block.erase_arg(argument)
    op.operands = operands


@dataclass(frozen=True)
class _Place:
    """Axis, order and groups in which an operand's parts are concatenated, so that the op sums over
    them.
    """

    axis: int
    """Axis along which the op sums."""
    is_data: bool
    """True if the parts are in the order of data, not of weights."""
    groups: int = 1
    """Number of groups of channels; each group has separate parts."""


def _places(op: Operation) -> tuple[_Place, _Place]:
    """Returns how the parts of each of the two operands are concatenated."""
    if isinstance(op, window.ConvOp):
        return _Place(1, True, op.groups.value.data), _Place(1, False)
    if isinstance(op, window.ConvTransposeOp):
        groups = op.groups.value.data
        return _Place(1, True, groups), _Place(0, False, groups)
    if isinstance(op, nn.MatmulOp):
        a, b = rank_of(op.a), rank_of(op.b)
        return (
            _Place(a - 2 if op.transpose_a.value.data else a - 1, True),
            _Place(b - 1 if op.transpose_b.value.data else b - 2, False),
        )
    return _Place(rank_of(op.operands[0]) - 1, True), _Place(1, False)


class _ValueSplitter:
    """Splitter of a block's values; it splits each value once."""

    def __init__(self) -> None:
        self._joined: dict[tuple[SSAValue, _Place], SSAValue] = {}

    def joined(self, value: SSAValue, place: _Place) -> SSAValue:
        """Returns the parts of a value, concatenated."""
        key = (value, place)
        if key not in self._joined:
            ops = OpSequence(UnknownLoc())
            high, bounded, low = _parts(ops, value)
            order = (high, bounded, low) if place.is_data else (high, low, bounded)
            self._joined[key] = _side_by_side(ops, order, place)
            Rewriter.insert_op(ops.ops, place_after(value))
            for op in reversed(ops.ops):
                if isinstance(op, RelayOp) and self._joined[key].owner is not op:
                    erase_if_dead(op)
        return self._joined[key]


def _parts(ops: OpSequence, value: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Returns a value's high part, the high part with 0 for infinities and NaNs, and the low
    part.
    """
    largest, zero = (
        ops.constant(name, np.array(number, np.float32))
        for name, number in (("largest", np.finfo(np.float32).max), ("zero", 0))
    )
    is_finite = ops.add(logic.LessEqualOp, ops.add(elementwise.AbsOp, value), largest)
    finite = ops.add(elementwise.WhereOp, is_finite, value, zero)
    near = _clipped(ops, finite, _LARGEST)
    high = ops.cast(ops.add(elementwise.WhereOp, is_finite, near, value), ml_dtypes.bfloat16)
    bounded = ops.cast(near, ml_dtypes.bfloat16)
    rest = ops.add(elementwise.SubtractOp, finite, ops.cast(bounded, np.float32))
    return high, bounded, ops.cast(_clipped(ops, rest, _LARGEST_REST), ml_dtypes.bfloat16)


def _clipped(ops: OpSequence, value: SSAValue, bound: float) -> SSAValue:
    return ops.add(elementwise.ClipOp, value, a_min=-bound, a_max=bound)


def _side_by_side(ops: OpSequence, parts: Sequence[SSAValue], place: _Place) -> SSAValue:
    """Concatenates the parts along an axis, group by group."""
    axis, groups = place.axis, place.groups
    if groups == 1:
        return ops.add(transform.ConcatenateOp, parts, axis=axis)
    shape = list(sizes_of(parts[0]))
    grouped = [*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]]
    joined = ops.add(
        transform.ConcatenateOp, [ops.reshape(one, grouped) for one in parts], axis=axis + 1
    )
    return ops.reshape(joined, [*shape[:axis], 3 * shape[axis], *shape[axis + 1 :]])
