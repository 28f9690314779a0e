"""Which values of a block are rounded to 16 bits: what `to-mixed-precision` decides."""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from byoc_mlir.backends import Backend
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import relay_name, shape_of, tensor_type
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.dialects.relay.elementwise import BroadcastOp, UnaryOp, WhereOp
from byoc_mlir.dialects.relay.nn import BiasAddOp
from byoc_mlir.transforms.blocks import is_constant, is_node, is_terminator
from byoc_mlir.transforms.cancelling_weights import why_not_rounded
from byoc_mlir.transforms.work import multiplications

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
"""Ops that move numbers, or are computed in `f32` and rounded once, where all that they read is
rounded already, but for what is much smaller than their result.

All others stay in `f32`: softmax, norms, sums, exponentials, logarithms, …, and composites without
a product.
"""

_FUSED = (UnaryOp, BroadcastOp, BiasAddOp, WhereOp)
"""What a composite with a product may hold besides: functions of the product's elements."""


_MUCH = 16
"""Of how many elements one may be converted without a thought."""


class Gains:
    """The products that backends compute faster in a type of 16 bits."""

    def __init__(self, type_: str, backends: Sequence[Backend]):
        self._backends = backends
        self._gains = {one.name: one.gains_from(type_) for one in backends}
        self.kept_float: dict[str, str] = {}
        """Why nodes stay in `f32` whose kind gains: of those that were asked for."""

    def product(self, op: Operation) -> Operation | None:
        """The product in an op that gains, which is itself or a composite with one product."""
        taker = self._taker(op)
        known = self._gains[taker].ops if taker in self._gains else frozenset[str]()
        if not isinstance(op, CompositeOp):
            return op if relay_name(op) in known else None
        found = [one for one in op.ops() if relay_name(one) in known]
        others = [one for one in op.ops() if one not in found and not is_constant(one)]
        if len(found) != 1 or len(op.outputs) != 1:
            return None
        return found[0] if all(isinstance(one, _FUSED) for one in others) else None

    def stays(self, op: Operation, product: Operation) -> bool:
        """Whether an op with such a product is faster, or needed more exactly, in `f32`."""
        gains = self._gains[self._taker(op)]
        reason = (
            why_not_rounded(op, product)
            or _why_too_small(product, gains.least)
            or gains.faster_in_f32(op)
        )
        if reason is not None:
            self.kept_float |= dict.fromkeys(node_names(op), reason)
        return reason is not None

    def _taker(self, op: Operation) -> str:
        """The backend that gets an op; "" for one that none of those gets that gain from it."""
        if isinstance(op, CompositeOp):
            return op.compiler
        if any(relay_name(op) in one.ops for one in self._gains.values()):
            for backend in self._backends:
                rule = backend.op_rules().get(relay_name(op))
                if rule is not None and rule(op) is None:
                    return backend.name
        return ""


@dataclass(frozen=True)
class Product:
    """A product that gains."""

    op: Operation
    operands: frozenset[int]
    """Which operands of the op in the block, this one or its composite, are multiplied."""


class RoundedValues:
    """The plan for one block: which ops write rounded numbers, and who reads them."""

    def __init__(self, block: Block, gains: Gains):
        self.ops = [op for op in block.ops if is_node(op)]
        found = {op: _product(op, gains) for op in self.ops}
        self._products = {op: one for op, one in found.items() if one is not None}
        kept = {value for op in block.ops if is_terminator(op) for value in op.operands}
        self._rounding = self._wanted(self._able(kept))
        self._read = {op: self._reading(op) for op in self.ops}

    def product(self, op: Operation) -> Product | None:
        """The product that gains in an op of the block."""
        return self._products.get(op)

    def is_rounding(self, op: Operation) -> bool:
        """Whether an op writes numbers of 16 bits."""
        return op in self._rounding

    def rounded_operands(self, op: Operation) -> Collection[int]:
        """The operands that an op reads as numbers of 16 bits, by position."""
        return self._read.get(op, ())

    def _able(self, kept: Container[SSAValue]) -> set[Operation]:
        """Ops that could write rounded numbers, for all that they read; not those of `kept`."""
        able: set[Operation] = set()
        for op in self.ops:
            follows = _follows(op) and self._reads_rounded(op, able)
            if (op in self._products or follows) and not any(one in kept for one in op.results):
                able.add(op)
        return able

    def _reads_rounded(self, op: Operation, able: Container[Operation | Block]) -> bool:
        """Whether all that an op reads is rounded, but for what is much smaller than its result."""
        values = [op.operands[one] for one in _floats(op)]
        rounded = [value for value in values if value.owner in able]
        return bool(rounded) and all(
            value in rounded or _is_much_smaller(value, op.results[0]) for value in values
        )

    def _wanted(self, able: Collection[Operation]) -> set[Operation]:
        """Those of them whose numbers a product reads in the end, and reductions."""
        wanted: set[Operation | Block] = set()
        for op in reversed(self.ops):
            is_reduction = op not in self._products and _reduces(op)
            if op in able and (op in wanted or is_reduction):
                wanted.add(op)
                wanted.update(op.operands[index].owner for index in _floats(op))
            elif op in self._products:
                wanted.update(op.operands[index].owner for index in self._products[op].operands)
        return {op for op in able if op in wanted}

    def _reading(self, op: Operation) -> frozenset[int]:
        found = self._products.get(op)
        if found is None:
            return frozenset(_floats(op) if op in self._rounding else ())
        rounded = {index for index in _floats(op) if op.operands[index].owner in self._rounding}
        return found.operands | rounded


def _product(op: Operation, gains: Gains) -> Product | None:
    product = gains.product(op)
    if product is None or any(tensor_type(one).element_type != f32 for one in product.operands):
        return None
    operands = range(len(op.operands))
    if product is not op:
        arguments = [one for one in product.operands if isinstance(one, BlockArgument)]
        operands = [one.index for one in arguments]
        if len(operands) < len(product.operands):
            return None
    return None if gains.stays(op, product) else Product(product, frozenset(operands))


def _follows(op: Operation) -> bool:
    """Whether an op is computed as well on rounded numbers, none of which is a constant."""
    if isinstance(op, CompositeOp) or relay_name(op) not in _FOLLOWING:
        return False
    floats = [op.operands[index] for index in _floats(op)]
    return bool(floats) and not any(isinstance(value.owner, ConstantOp) for value in floats)


def _reduces(op: Operation) -> bool:
    """Whether widening all that an op reads would cost more than rounding what it writes."""
    return len(op.results) == 1 and any(
        _is_much_smaller(op.results[0], op.operands[one]) for one in _floats(op)
    )


def _is_much_smaller(value: SSAValue, other: SSAValue) -> bool:
    if not all(tensor_type(one).has_static_shape() for one in (value, other)):
        return False
    return _MUCH * math.prod(shape_of(value)) <= math.prod(shape_of(other))


def _why_too_small(product: Operation, least: int) -> str | None:
    if not all(tensor_type(value).has_static_shape() for value in product.operands):
        return None
    count = multiplications(product)
    return f"{count:,} multiplications gain nothing" if count < least else None


def _floats(op: Operation) -> Sequence[int]:
    """The positions of the operands of `f32`."""
    return [
        index
        for index, value in enumerate(op.operands)
        if isinstance(value.type, TensorType) and tensor_type(value).element_type == f32
    ]
