"""The pass `fuse-dnnl-sums`: additions in the addend's own memory."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.dialect.quantized import is_ours
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.backends.dnnl.primitives.shared_memory import NAMES
from byoc_mlir.dialects.relay import ConstantOp


class FuseDnnlSums(RegionPass):
    """Converts `#dnnl.binary<add>` of convolutions to `#dnnl.sum`, which reuses the addend's
    memory.

    The addend must be computed in the region, have the result's type, and have no later user. A
    region's input, a constant, or a value that is needed again keeps its memory. So does an operand
    of the built-in int8 kernel, which may write some pixels twice.

    ```mlir
    %2 = dnnl.convolution %1, %w, %0 {post_ops = [#dnnl.binary<add>]} : …
    ```
    becomes
    ```mlir
    %2 = dnnl.convolution %1, %w, %0 {post_ops = [#dnnl.sum]} : …
    ```
    """

    name = "fuse-dnnl-sums"

    def change(self, region: FuncOp) -> None:
        positions = {op: index for index, op in enumerate(region.body.block.ops)}
        for op in region.body.block.ops:
            if isinstance(op, dnnl.WeightedWindowOp) and not is_ours(op):
                _fuse(op, positions)


def _fuse(op: dnnl.PostOpsOp, positions: Mapping[Operation, int]) -> None:
    attributes: list[Attribute] = []
    operands = iter(op.post_op_operands)
    summed = False
    for attribute in op.post_ops:
        if isinstance(attribute, dnnl.EltwiseAttr):
            attributes.append(attribute)
            continue
        addend = next(operands)
        is_add = isinstance(attribute, dnnl.BinaryAttr) and attribute.algorithm.data == "add"
        if is_add and not summed and _dies_at(addend, op, positions):
            attributes.append(dnnl.SumAttr.of())
            summed = True
        else:
            attributes.append(attribute)
    op.properties["post_ops"] = ArrayAttr(attributes)


def _dies_at(addend: SSAValue, op: dnnl.PostOpsOp, positions: Mapping[Operation, int]) -> bool:
    owner = addend.owner
    if not isinstance(owner, Operation) or isinstance(owner, (ConstantOp, ReturnOp, *NAMES)):
        return False
    if addend.type != op.output.type or op.operands.count(addend) != 1:
        return False
    readers = [use.operation for use in addend.uses if use.operation is not op]
    # A view shows the same memory for as long as the view itself is read.
    return all(
        not isinstance(reader, NAMES) and positions[reader] < positions[op] for reader in readers
    )
