"""The pass `to-mixed-precision`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, bf16, f16, f32
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects.byoc import CompositeOp, YieldOp
from byoc_mlir.dialects.relay.base import tensor_of, tensor_type, type_sizes
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.elementwise import CastOp
from byoc_mlir.dialects.relay.window import ConvOp
from byoc_mlir.transforms.blocks import partitioned_blocks
from byoc_mlir.transforms.kept_float import keep_float
from byoc_mlir.transforms.profitability import ProfitableGemm, ProfitableGemms
from byoc_mlir.transforms.rewriting import constant_array, place_after
from byoc_mlir.transforms.rounded_values import RoundedValues

MixedType: TypeAlias = Literal["bf16", "f16"]
_TYPES: Mapping[MixedType, Attribute] = {"bf16": bf16, "f16": f16}


@dataclass(frozen=True)
class ToMixedPrecision(ModulePass):
    """Converts matmuls and convolutions to 16 bits, where a backend computes them faster.

    The converted ops accumulate in `f32`, and other ops in their composites are computed in `f32`.
    The pass rounds the inputs of converted ops. It rounds a result if another converted op reads
    it, directly or through ops that *follow* (`rounded_values.py` lists them). Values with other
    users stay in `f32`, and so do inputs and outputs of the model.

    An op also stays in `f32` if its backend reports that `f32` is faster, or if it is a convolution
    whose weights cancel. The module records why.

    Runs between `merge-composite` and `annotate-target`.

    Options:
        type: `bf16` or `f16`.
        targets: backends that report what they compute faster.
        exact: names of nodes whose products stay in `f32`.

    ```mlir
    %0 = byoc.composite "dnnl.conv2d_relu" from "nn.conv2d_nn.relu_"
        (%a = %x : tensor<1x8x9x9xf32>, %b = %w : …) -> tensor<1x8x9x9xf32> {
      %1 = relay.nn.conv2d %a, %b {…} : (…) -> tensor<1x8x9x9xf32>
      %2 = relay.nn.relu %1 : (tensor<1x8x9x9xf32>) -> tensor<1x8x9x9xf32>
      byoc.yield %2 : tensor<1x8x9x9xf32>
    }
    %3 = relay.nn.conv2d %0, %v {…} : (…) -> tensor<1x8x9x9xf32>
    ```
    becomes
    ```mlir
    %4 = relay.cast %x {dtype = bf16} : (tensor<1x8x9x9xf32>) -> tensor<1x8x9x9xbf16>
    %0 = byoc.composite "dnnl.conv2d_relu" from "nn.conv2d_nn.relu_"
        (%a = %4 : tensor<1x8x9x9xbf16>, %b = … : …) -> tensor<1x8x9x9xbf16> {
      %1 = relay.nn.conv2d %a, %b {…, out_dtype = f32} : (…) -> tensor<1x8x9x9xf32>
      %2 = relay.nn.relu %1 : (tensor<1x8x9x9xf32>) -> tensor<1x8x9x9xf32>
      %5 = relay.cast %2 {dtype = bf16} : (tensor<1x8x9x9xf32>) -> tensor<1x8x9x9xbf16>
      byoc.yield %5 : tensor<1x8x9x9xbf16>
    }
    %3 = relay.nn.conv2d %0, … {…, out_dtype = f32} : (…) -> tensor<1x8x9x9xf32>
    ```
    """

    name = "to-mixed-precision"

    type: MixedType
    targets: tuple[str, ...]
    exact: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gains = ProfitableGemms(self.type, self.targets, self.exact, why_not_rounded)
        for block in partitioned_blocks(op):
            _Mixer(RoundedValues(block, gains), _TYPES[self.type]).run()
        keep_float(op, gains.kept_float)


class _Mixer:
    """Rewriter of the ops of a block, in program order."""

    def __init__(self, plan: RoundedValues, type_: Attribute):
        self._plan, self._type = plan, type_
        self._rounded: dict[SSAValue, SSAValue] = {}
        """Cast of each `f32` value that is read in the rounded type."""

    def run(self) -> None:
        for op in self._plan.ops:
            product = self._plan.product(op)
            for index in self._plan.rounded_operands(op):
                op.operands[index] = self._as_rounded(op.operands[index])
            if product is not None:
                self._mix(op, product)
            elif isinstance(op, CompositeOp) and self._plan.is_rounding(op):
                _mix_body(op)
                _round_yielded(op, self._type)
            for result in tuple(op.results) if self._plan.is_rounding(op) else ():
                self._retype(op, result)

    def _as_rounded(self, value: SSAValue) -> SSAValue:
        if tensor_type(value).element_type == self._type:
            return value
        if value not in self._rounded:
            cast = CastOp(value, dtype=self._type)
            Rewriter.insert_op(cast, place_after(value))
            self._rounded[value] = cast.output
        return self._rounded[value]

    def _mix(self, op: Operation, product: ProfitableGemm) -> None:
        """Converts a GEMM or convolution; its results stay `f32` unless the plan rounds them."""
        is_rounding = self._plan.is_rounding(op)
        if isinstance(op, CompositeOp):
            _mix_body(op, product.op)
            if is_rounding:
                _round_yielded(op, self._type)
        if isinstance(op, CompositeOp) or not is_rounding:
            product.op.properties["out_dtype"] = f32

    def _retype(self, op: Operation, result: SSAValue) -> None:
        """Changes a result to the rounded type, with a cast for users that need `f32`."""
        type_ = tensor_of(self._type, type_sizes(tensor_type(result)))
        new = Rewriter.replace_value_with_new_type(result, type_)
        uses = [
            use for use in new.uses if use.index not in self._plan.rounded_operands(use.operation)
        ]
        if uses:
            cast = CastOp(new, dtype=f32)
            Rewriter.insert_op(cast, InsertPoint.after(op))
            for use in uses:
                use.operation.operands[use.index] = cast.output


def _mix_body(op: CompositeOp, product: Operation | None = None) -> None:
    """Adapts a composite's body to its new operand types; all ops but `product` get `f32`
    operands.
    """
    block = op.body.block
    for argument, operand in zip(block.args, op.inputs, strict=True):
        if argument.type == operand.type:
            continue
        argument = Rewriter.replace_value_with_new_type(argument, operand.type)
        uses = [use for use in argument.uses if use.operation is not product]
        if uses:
            cast = CastOp(argument, dtype=f32)
            cast.location = op.location
            Rewriter.insert_op(cast, InsertPoint.at_start(block))
            for use in uses:
                use.operation.operands[use.index] = cast.output


def _round_yielded(op: CompositeOp, type_: Attribute) -> None:
    end = op.body.block.last_op
    assert isinstance(end, YieldOp)
    cast = CastOp(end.values[0], dtype=type_)
    cast.location = op.location
    Rewriter.insert_op(cast, InsertPoint.before(end))
    end.operands[0] = cast.output


_KEPT = 1 / 64
"""Maximum relative change of a sum of weights by rounding."""


def why_not_rounded(op: Operation, product: Operation) -> str | None:
    """Returns why a convolution's weights must not be rounded to `bf16`, or `None` if they may be.

    On constant data, such as the background of a page of text, a convolution computes the sum of
    its weights. For an edge detector this sum is close to zero, so that rounding errors exceed it.

    Args:
        op: op of the block: the convolution itself, or a composite that contains it.
        product: the convolution; for a matmul, the result is `None`.
    """
    if not isinstance(product, ConvOp):
        return None
    weight = product.operands[1]
    if isinstance(weight, BlockArgument) and product is not op:
        weight = op.operands[weight.index]
    exact = constant_array(weight)
    if exact is None:
        return None
    sums, rounded = (
        array.reshape(len(array), -1).sum(axis=1, dtype=np.float64)
        for array in (exact, exact.astype(numpy_dtype(bf16)))
    )
    moved = int(np.count_nonzero(np.abs(rounded - sums) > _KEPT * np.abs(sums)))
    if 2 * moved <= len(sums):
        return None
    return f"rounded weights would give other sums in {moved} of {len(sums)} channels"
