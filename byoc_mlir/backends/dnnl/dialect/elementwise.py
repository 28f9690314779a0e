"""Functions of single elements, and of pairs of elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.backends.dnnl.dialect.attributes import BINARY, check_name
from byoc_mlir.backends.dnnl.dialect.base import ExecutedOp, PostOpsOp, like
from byoc_mlir.dialects.relay.base import float_prop, shape_of, str_prop
from byoc_mlir.dialects.relay.elementwise import broadcast_shapes
from byoc_mlir.kernels.activations import FORMULAS
from byoc_mlir.onednn import constants


@irdl_op_definition
class EltwiseOp(PostOpsOp):
    """`source [...] -> [...]`, a function of each element.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_eltwise.html
    """

    name = "dnnl.eltwise"
    algorithm = str_prop()
    alpha = float_prop(0.0)
    beta = float_prop(0.0)

    def infer_types(self) -> Sequence[Attribute]:
        (source,) = self.check_primary(1, 1)
        check_name(f"{self.name}: algorithm", self.algorithm.data, constants.ELTWISE)
        return (like(source, shape_of(source)),)


@irdl_op_definition
class ActivationOp(ExecutedOp):
    """`source [...] -> [...]`, an activation in the source's memory, by a built-in kernel.

    The algorithms have the names of `dnnl.eltwise`: `swish`, `gelu_erf` or `gelu_tanh`.
    """

    name = "dnnl.activation"
    source = operand_def(TensorType)
    algorithm = str_prop()
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        check_name(f"{self.name}: algorithm", self.algorithm.data, FORMULAS)
        return (self.source.type,)


@irdl_op_definition
class BinaryOp(PostOpsOp):
    """`a [...], b [...] -> [...]` of one rank; dimensions of 1 broadcast.

    The algorithm `prelu` multiplies negative elements by the slopes `b`. It is a separate primitive
    without post-ops: https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_prelu.html

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_binary.html
    """

    name = "dnnl.binary"
    algorithm = str_prop()

    def infer_types(self) -> Sequence[Attribute]:
        a, b = self.check_primary(2, 2)
        check_name(f"{self.name}: algorithm", self.algorithm.data, BINARY)
        if len(shape_of(a)) != len(shape_of(b)):
            raise VerifyException(f"{self.name}: ranks of {a.type} and {b.type} differ")
        return (like(a, broadcast_shapes(shape_of(a), shape_of(b))),)
