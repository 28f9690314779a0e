"""The pass `limit-weight-growth`: how much memory packed weights may take."""

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
from byoc_mlir.transforms.blocks import is_constant
from byoc_mlir.transforms.work import tensor_bytes


@dataclass(frozen=True)
class LimitWeightGrowth(ModulePass):
    """Says how many bytes the packed weights of convolutions may take for each byte of them.

    Algorithms that compute less have more weights. Those of all convolutions together, with what
    the model has of other constants, may take `memory` times the constants of the model, and as
    much again as the values that live at once take; a small model, whose code takes more than its
    weights, at least `free` bytes more than without packing.

    Options:
        memory: times the constants of the model.
        free: bytes that nobody misses.

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
    """The constants that lie beside the IR."""
    for op in module.walk():
        if isinstance(op, ConstantOp) and isinstance(op.value, WeightAttr):
            yield op


def _bytes_of(constants: Iterable[ConstantOp]) -> int:
    """The memory of constants, each content once."""
    sizes = {str(constant.value): _size(constant.output) for constant in constants}
    return sum(sizes.values())


def _convolved(module: ModuleOp) -> Iterator[ConstantOp]:
    """The weights of convolutions in `f32`, and of those of bytes: some are computed by way of
    `f32`."""
    for op in module.walk():
        if not isinstance(op, ConvOp | QuantizedConvOp):
            continue
        constant = _outside(op.weight).owner
        is_counted = isinstance(op, QuantizedConvOp) or tensor_type(op.weight).element_type == f32
        if is_counted and isinstance(constant, ConstantOp):
            yield constant


def _outside(value: SSAValue) -> SSAValue:
    """The value that an argument of a composite stands for."""
    if isinstance(value, BlockArgument):
        composite = value.block.parent_op()
        if isinstance(composite, CompositeOp):
            return composite.operands[value.index]
    return value


def _live_bytes(block: Block) -> int:
    """The most memory of values that a block uses at the same time."""
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
        live -= sum(_size(value) for value in ending if not _is_constant(value))
    return most


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and is_constant(value.owner)


def _size(value: SSAValue) -> int:
    """The bytes of a tensor, for the hints of symbolic sizes."""
    return hint(tensor_bytes(value))
