"""Values that are checked at run time."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import OneResultOp, int_prop, str_prop, tensor_type


@irdl_op_definition
class CheckedOp(OneResultOp):
    """`data, found [] -> output`: `data`, after checking `least <= found <= most` for an `i64`.

    If the check fails, the run ends with an error, which calls the number `what`. Only users of
    `output` are guaranteed to run after the check.
    """

    name = "relay.checked"
    data = operand_def(TensorType)
    found = operand_def(TensorType)
    what = str_prop()
    least = int_prop()
    most = int_prop()

    def infer_types(self) -> Sequence[Attribute]:
        if tensor_type(self.found) != TensorType(i64, []):
            raise VerifyException(
                f"{self.name}: found must be tensor<i64>, found {tensor_type(self.found)}"
            )
        return (tensor_type(self.data),)
