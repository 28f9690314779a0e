"""The pass `widen-products`."""

from __future__ import annotations

from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.dialects.relay.constant import widened
from byoc_mlir.dialects.relay.element_types import HALVES
from byoc_mlir.dialects.relay.elementwise import CastOp
from byoc_mlir.dialects.relay.nn import DenseOp, MatmulOp
from byoc_mlir.dialects.relay.window import ConvOp, ConvTransposeOp
from byoc_mlir.limits import in_time

_PRODUCTS = (ConvOp, ConvTransposeOp, DenseOp, MatmulOp)


class WidenProducts(ModulePass):
    """Converts convolutions and matmuls of 16-bit floats to `f32`, for which the host has
    kernels.

    Constant weights are widened at compile time, other operands at run time.

    ```mlir
    %0 = relay.nn.dense %x, %w : (tensor<4x8xf16>, tensor<2x8xf16>) -> tensor<4x2xf16>
    // becomes
    %1 = relay.cast %x {dtype = f32} : (tensor<4x8xf16>) -> tensor<4x8xf32>
    %2 = relay.nn.dense %1, %wide : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x2xf32>
    %0 = relay.cast %2 {dtype = f16} : (tensor<4x2xf32>) -> tensor<4x2xf16>
    ```
    """

    name = "widen-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in host_blocks(op):
            for inner in in_time(block.walk()):
                if isinstance(inner, _PRODUCTS) and _is_half(inner):
                    _widen(inner)


def _is_half(op: RelayOp) -> bool:
    return tensor_type(op.operands[0]).element_type in HALVES


def _widen(op: RelayOp) -> None:
    result = op.results[0]
    properties = {name: one for name, one in op.properties.items() if name != "out_dtype"}
    wide = type(op)(*(_wide(value, op) for value in op.operands), **cast(Any, properties))
    wide.location = op.location
    Rewriter.insert_op(wide, InsertPoint.before(op))
    value: SSAValue = wide.results[0]
    if value.type != result.type:
        value = _added(CastOp(value, dtype=tensor_type(result).element_type), op)
    result.replace_all_uses_with(value)
    Rewriter.erase_op(op)


def _wide(value: SSAValue, op: Operation) -> SSAValue:
    known = value.owner
    if not isinstance(known, ConstantOp):
        return _added(CastOp(value, dtype=f32), op)
    return _added(widened(known), op)


def _added(new: RelayOp, before: Operation) -> SSAValue:
    new.location = before.location
    Rewriter.insert_op(new, InsertPoint.before(before))
    return new.results[0]
