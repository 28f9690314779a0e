"""Matmuls."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.backends.dnnl.dialect.attributes import check_name
from byoc_mlir.backends.dnnl.dialect.base import ProductOp
from byoc_mlir.dialects.relay.base import bool_prop, shape_of, str_prop
from byoc_mlir.dialects.relay.elementwise import broadcast_shapes


@irdl_op_definition
class InnerProductOp(ProductOp):
    """`source [M, K], weights [N, K], bias [N] -> [M, N]`.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_inner_product.html
    """

    name = "dnnl.inner_product"

    def infer_types(self) -> Sequence[Attribute]:
        source, weights = self.check_primary(2, 3)[:2]
        shape, kernel = shape_of(source), shape_of(weights)
        if len(shape) != 2 or len(kernel) != 2 or shape[1] != kernel[1]:
            raise VerifyException(
                f"{self.name}: weights {weights.type} do not fit source {source.type}"
            )
        return (self.written(source, [shape[0], kernel[0]]),)


@irdl_op_definition
class MatmulOp(ProductOp):
    """`a [..., M, K], b [..., K, N], bias [..., 1, N] -> [..., M, N]`; leading dims broadcast.

    `transpose_a` and `transpose_b` swap the last two dimensions of an operand first. Both operands
    and the result have the same rank. `packing` is the layout into which a constant `b` of shape
    `[K, N]` is packed: `any` is the layout that oneDNN requests, `ba` is column-major.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_matmul.html
    """

    name = "dnnl.matmul"
    transpose_a = bool_prop(False)
    transpose_b = bool_prop(False)
    packing = str_prop("any")

    def infer_types(self) -> Sequence[Attribute]:
        a, b = self.check_primary(2, 3)[:2]
        one, two = list(shape_of(a)), list(shape_of(b))
        if self.transpose_a.value.data:
            one[-2:] = reversed(one[-2:])
        if self.transpose_b.value.data:
            two[-2:] = reversed(two[-2:])
        if len(one) != len(two) or len(one) < 2 or one[-1] != two[-2]:
            raise VerifyException(f"{self.name}: {a.type} and {b.type} do not fit together")
        check_name(f"{self.name}: packing", self.packing.data, ("any", "ba"))
        shape = [*broadcast_shapes(one[:-2], two[:-2]), one[-2], two[-1]]
        return (self.written(a, shape),)
