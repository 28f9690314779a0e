"""ONNX nodes without a counterpart in this dialect, carried along unchanged."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import onnx
from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, prop_def, var_operand_def, var_result_def

from byoc_mlir.dialects.relay.base import RelayOp, int_prop, str_prop


@irdl_op_definition
class OnnxNodeOp(RelayOp):
    """ONNX node as an op. An omitted input or output has the name "" in the node, and no operand or
    result.

    `node` is the serialised `NodeProto` in base 64, `opset` the version of its domain, `reason` why
    the host cannot compile it.
    """

    name = "relay.onnx_node"
    data = var_operand_def(TensorType)
    op_type = prop_def(StringAttr)
    domain = str_prop("")
    opset = int_prop()
    node = prop_def(StringAttr)
    reason = str_prop("")
    outputs = var_result_def(TensorType)

    @classmethod
    def of(
        cls,
        node: onnx.NodeProto,
        opset: int,
        operands: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        reason: str = "",
    ) -> OnnxNodeOp:
        """Returns the op for a node of a model."""
        return cls(
            operands,
            op_type=node.op_type,
            domain=node.domain,
            opset=opset,
            node=base64.b64encode(node.SerializeToString()).decode(),
            reason=reason,
            result_types=result_types,
        )

    @property
    def proto(self) -> onnx.NodeProto:
        """Returns the node."""
        return onnx.NodeProto.FromString(base64.b64decode(self.node.data))

    def infer_types(self) -> Sequence[Attribute]:
        return [result.type for result in self.results]
