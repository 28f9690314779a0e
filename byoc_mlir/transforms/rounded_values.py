"""Selection of a block's values that `to-mixed-precision` rounds to 16 bits."""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Sequence

from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block, Operation, SSAValue

from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay.base import relay_name, shape_of, tensor_type
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.transforms.blocks import is_node, is_terminator
from byoc_mlir.transforms.profitability import ProfitableGemm, ProfitableGemms

_FOLLOWING = frozenset(
    {
        *("reshape", "squeeze", "expand_dims", "transpose", "broadcast_to"),
        *("concatenate", "split", "strided_slice", "nn.pad", "nn.relu"),
        *("add", "subtract", "multiply", "clip", "sigmoid", "tanh", "nn.leaky_relu"),
        *(f"nn.{kind}_pool{rank}d" for kind in ("max", "global_max") for rank in (1, 2, 3)),
        *(f"nn.{kind}_pool{rank}d" for kind in ("avg", "global_avg") for rank in (1, 2, 3)),
        *("mean", "image.resize"),
    }
)
"""Ops that follow: they move elements, or are computed in `f32` and rounded once. They may write 16
bits if all their inputs are rounded, except inputs much smaller than their result.

All others stay in `f32`: softmax, norms, sums, exponentials, logarithms, …, and composites without
a GEMM or convolution, except those in `Profitability.following` of their backend."""

_MUCH = 16
"""Ratio of element counts at which converting the smaller value costs next to nothing."""


class RoundedValues:
    """Plan for one block: the ops that write rounded values, and the users of these values."""

    def __init__(self, block: Block, gains: ProfitableGemms):
        self.ops = [op for op in block.ops if is_node(op)]
        self._profitability = gains
        found = {op: gains.product(op) for op in self.ops}
        self._products = {op: one for op, one in found.items() if one is not None}
        kept = {value for op in block.ops if is_terminator(op) for value in op.operands}
        self._rounding = self._wanted(self._able(kept))
        self._read = {op: self._reading(op) for op in self.ops}

    def product(self, op: Operation) -> ProfitableGemm | None:
        """Returns the profitable GEMM in an op of the block, or `None`."""
        return self._products.get(op)

    def is_rounding(self, op: Operation) -> bool:
        """True if an op writes values of 16 bits."""
        return op in self._rounding

    def rounded_operands(self, op: Operation) -> Collection[int]:
        """Returns the indices of the operands that an op reads in 16 bits."""
        return self._read.get(op, ())

    def _able(self, kept: Container[SSAValue]) -> set[Operation]:
        """Returns the ops that could write rounded values, judged by their inputs alone.

        Ops with a result in `kept` are excluded.
        """
        able: set[Operation] = set()
        for op in self.ops:
            follows = self._follows(op) and self._reads_rounded(op, able)
            if (op in self._products or follows) and not any(one in kept for one in op.results):
                able.add(op)
        return able

    def _follows(self, op: Operation) -> bool:
        """True if an op is as accurate on rounded values, and none of its operands is a
        constant.
        """
        if isinstance(op, CompositeOp):
            return self._profitability.follows(op)
        if relay_name(op) not in _FOLLOWING:
            return False
        floats = [op.operands[index] for index in _floats(op)]
        return bool(floats) and not any(isinstance(value.owner, ConstantOp) for value in floats)

    def _reads_rounded(self, op: Operation, able: Container[Operation | Block]) -> bool:
        """True if all inputs of an op are rounded; inputs much smaller than its result do not
        count.
        """
        values = [op.operands[one] for one in _floats(op)]
        rounded = [value for value in values if value.owner in able]
        return bool(rounded) and all(
            value in rounded or _is_much_smaller(value, op.results[0]) for value in values
        )

    def _wanted(self, able: Collection[Operation]) -> set[Operation]:
        """Returns the ops of `able` that reduce, or whose results a profitable GEMM uses."""
        wanted: set[Operation | Block] = set()
        for op in reversed(self.ops):
            is_reduction = op not in self._products and _reduces(op)
            if op in able and (op in wanted or is_reduction):
                wanted.add(op)
                wanted.update(op.operands[index].owner for index in _floats(op))
            elif op in self._products:
                wanted.update(op.operands[index].owner for index in self._products[op].operands)
        return {op for op in able if op in wanted}

    def _reading(self, op: Operation) -> Collection[int]:
        found = self._products.get(op)
        if found is None:
            return _floats(op) if op in self._rounding else ()
        rounded = {index for index in _floats(op) if op.operands[index].owner in self._rounding}
        return rounded.union(found.operands)


def _reduces(op: Operation) -> bool:
    """True if widening all inputs of an op costs more than rounding its result."""
    return len(op.results) == 1 and any(
        _is_much_smaller(op.results[0], op.operands[one]) for one in _floats(op)
    )


def _is_much_smaller(value: SSAValue, other: SSAValue) -> bool:
    if not all(tensor_type(one).has_static_shape() for one in (value, other)):
        return False
    return _MUCH * math.prod(shape_of(value)) <= math.prod(shape_of(other))


def _floats(op: Operation) -> Sequence[int]:
    """Returns the indices of an op's `f32` operands; constants of a composite do not count."""
    return [
        index
        for index, value in enumerate(op.operands)
        if isinstance(value.type, TensorType)
        and tensor_type(value).element_type == f32
        and not (isinstance(op, CompositeOp) and isinstance(value.owner, ConstantOp))
    ]
