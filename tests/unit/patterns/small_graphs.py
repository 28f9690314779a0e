"""Builder of small functions for pattern tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import FunctionType, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from byoc_mlir.dialects.relay.constant import ConstantOp

VECTOR = TensorType(f32, [4])


class Graph:
    """Function under construction; calling it adds an op and returns its first result."""

    def __init__(self, *arguments: Attribute):
        self.block = Block(arg_types=arguments or [VECTOR, VECTOR])
        self.args = self.block.args

    def add(self, op: Operation) -> Operation:
        self.block.add_op(op)
        return op

    def __call__(
        self,
        kind: Callable[..., Operation],
        *operands: SSAValue | Sequence[SSAValue],
        **properties: object,
    ) -> OpResult:
        return self.add(kind(*operands, **properties)).results[0]

    def constant(self, first: float, *others: float) -> OpResult:
        array = np.asarray([first, *others] if others else first, dtype=np.float32)
        return self.add(ConstantOp.of("c", array)).results[0]

    def finish(self, *results: SSAValue) -> FuncOp:
        self.block.add_op(ReturnOp(*results))
        types = [value.type for value in self.block.args], [value.type for value in results]
        func = FuncOp("main", FunctionType.from_lists(*types), Region(self.block))
        func.verify()
        return func
