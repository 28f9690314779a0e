"""The pass `limit-weight-growth`: limits the memory of packed weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32, f64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.dialects.byoc import WEIGHT_GROWTH, CompositeOp
from byoc_mlir.dialects.relay import ConstantOp, WeightAttr
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.dialects.relay.qnn_window import QuantizedConvOp
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.dialects.relay.window import ConvOp
from byoc_mlir.transforms.blocks import is_constant, is_constant_value
from byoc_mlir.transforms.work import tensor_bytes


@dataclass(frozen=True)
class LimitWeightGrowth(ModulePass):
    """Limits the bytes of convolutions' packed weights, as a multiple of the unpacked weights.

    Algorithms with fewer MACs need larger weights. Packed weights and other constants together may
    take `memory` times the bytes of the model's constants, plus the peak size of live values. For a
    small model, whose code is larger than its weights, the limit is at least `free` bytes more than
    without packing.

    Options:
        memory: factor on the model's constants.
        free: bytes that are always allowed.

    ```mlir
    func.func @main(…) -> … { … }
    // becomes
    func.func @main(…) -> … attributes {byoc.weight_growth = 2.5 : f64} { … }
    ```
    """

    name = "limit-weight-growth"

    memory: float = 2.0
    free: int = 1 << 23

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convolved = _bytes_of(_convolved(op))
        if convolved == 0 or math.isinf(self.memory):
            return
        constants = _bytes_of(_constants(op))
        functions = [one for one in op.ops if isinstance(one, FuncOp)]
        with asking_of(op):
            blocks = (block for function in functions for block in function.body.blocks)
            values = max(map(_live_bytes, blocks), default=0)
        more = max((self.memory - 1) * constants + values, self.free)
        growth = 1 + more / convolved
        for function in functions:
            function.attributes[WEIGHT_GROWTH] = FloatAttr(round(growth, 3), f64)


def _constants(module: ModuleOp) -> Iterator[ConstantOp]:
    """Yields the constants that are stored outside of the IR."""
    for op in module.walk():
        if isinstance(op, ConstantOp) and isinstance(op.value, WeightAttr):
            yield op


def _bytes_of(constants: Iterable[ConstantOp]) -> int:
    """Returns the bytes of constants, counting equal contents once."""
    sizes = {constant.value: _size(constant.output) for constant in constants}
    return sum(sizes.values())


def _convolved(module: ModuleOp) -> Iterator[ConstantOp]:
    """Yields the weights of `f32` convolutions, and of int8 convolutions, which may be computed in
    `f32`.
    """
    for op in module.walk():
        if not isinstance(op, ConvOp | QuantizedConvOp):
            continue
        constant = _outside(op.weight).owner
        is_counted = isinstance(op, QuantizedConvOp) or tensor_type(op.weight).element_type == f32
        if is_counted and isinstance(constant, ConstantOp):
            yield constant


def _outside(value: SSAValue) -> SSAValue:
    """Returns the composite's operand for an argument of its body; returns other values
    unchanged.
    """
    if isinstance(value, BlockArgument):
        composite = value.block.parent_op()
        if isinstance(composite, CompositeOp):
            return composite.operands[value.index]
    return value


def _live_bytes(block: Block) -> int:
    """Returns the peak size of a block's live values, in bytes."""
    last: dict[SSAValue, Operation] = {}
    for op in block.ops:
        last |= dict.fromkeys((*op.operands, *op.results), op)
    live = sum(map(_size, block.args))
    most = live
    for op in block.ops:
        if is_constant(op):
            continue
        live += sum(map(_size, op.results))
        most = max(most, live)
        ending = {value for value in (*op.operands, *op.results) if last[value] is op}
        live -= sum(_size(value) for value in ending if not is_constant_value(value))
    return most


def _size(value: SSAValue) -> int:
    """Returns the bytes of a tensor; each symbolic size counts as its hint."""
    return hint(tensor_bytes(value))
