"""The pass `place-dnnl-products`: matmuls that read or write permuted tensors, or copies of
these.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.costs.costs import Costs
from byoc_mlir.backends.dnnl.dialect.base import like
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.backends.dnnl.primitives.layout_choices import plain_layout
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.limits import in_time
from byoc_mlir.onednn.engine import openmp_threads


class PlaceDnnlProducts(RegionPass):
    """Chooses the layouts around every `dnnl.matmul`, by measured time.

    The matmul reads a permuted operand directly, or a row-major copy. If the only user of its
    result is a permutation, either the matmul's result or the permuted value is row-major.

    ```mlir
    %1 = dnnl.matmul %p, %v : … -> tensor<1x12x48x32xf32>
    %2 = dnnl.permute %1 {axes = [0, 2, 1, 3]}
      : (tensor<1x12x48x32xf32>) -> tensor<1x48x12x32xf32, #dnnl.layout<"acbd">>
    ```
    becomes
    ```mlir
    %1 = dnnl.matmul %p, %v : … -> tensor<1x12x48x32xf32, #dnnl.layout<"acbd">>
    %2 = dnnl.permute %1 {axes = [0, 2, 1, 3]}
      : (tensor<1x12x48x32xf32, #dnnl.layout<"acbd">>) -> tensor<1x48x12x32xf32>
    ```
    """

    name = "place-dnnl-products"

    def change(self, region: FuncOp) -> None:
        costs = Costs()
        with openmp_threads(1):
            for op in in_time(region.body.block.ops):
                if isinstance(op, dnnl.MatmulOp):
                    _place_result(op, costs)
                    for index in range(2):
                        _place_operand(op, index, costs)


def _cost(op: dnnl.MatmulOp, costs: Costs, value: SSAValue, layout: str) -> float:
    return costs.op(op, lambda one: layout if one is value else dnnl.layout_of(one))


def _place_operand(op: dnnl.MatmulOp, index: int, costs: Costs) -> None:
    operand = op.arguments[index]
    permuted, plain = dnnl.layout_of(operand), plain_layout(operand)
    if permuted == plain:
        return
    as_it_is = _cost(op, costs, operand, permuted)
    if as_it_is <= _cost(op, costs, operand, plain) + costs.reorder(operand, permuted, plain):
        return
    copy = dnnl.ReorderOp(operand, result_types=[like(operand, shape_of(operand))])
    copy.location = op.location
    Rewriter.insert_op(copy, InsertPoint.before(op))
    op.operands[index] = copy.output


def _place_result(op: dnnl.MatmulOp, costs: Costs) -> None:
    users = [use.operation for use in op.output.uses]
    permutations = [user for user in users if isinstance(user, dnnl.PermuteOp)]
    if not permutations or len(permutations) < len(users):
        return
    wanted = layouts.before_permutation(ints(permutations[0].axes))
    plain = plain_layout(op.output)
    copied = _cost(op, costs, op.output, plain) + costs.reorder(op.output, plain, wanted)
    if copied < _cost(op, costs, op.output, wanted):
        return
    _set_layout(op.output, wanted)
    for user in permutations:
        _set_layout(user.output, layouts.permuted(wanted, ints(user.axes)))
    if len(users) == 1:
        _drop_copy(permutations[0])


def _drop_copy(op: dnnl.PermuteOp) -> None:
    """Removes a reorder that is the only user of a permuted value.

    It is redundant if the permuted value now has the reorder's layout.
    """
    readers = [use.operation for use in op.output.uses]
    if len(readers) == 1 and isinstance(readers[0], dnnl.ReorderOp):
        copy = readers[0]
        if copy.output.type == op.output.type:
            copy.output.replace_all_uses_with(op.output)
            Rewriter.erase_op(copy)


def _set_layout(value: SSAValue, layout: str) -> None:
    Rewriter.replace_value_with_new_type(value, dnnl.with_layout(tensor_type(value), layout))
