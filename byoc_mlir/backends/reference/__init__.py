"""The fallback interpreter: runs nodes that no other backend runs with the ONNX reference
evaluator.

It accepts only forms for which the evaluator is proven right. It is an ordinary backend, and a
small example of one that plugs in another runtime: a region becomes an opaque blob, an ONNX
function, and a `RegionModule` makes it callable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import onnx
from onnx import numpy_helper
from xdsl.dialects import func
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends import Backend, Blob, CodegenContext, OpDetail, Rule, register_backend
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.errors import NodeProblem, UnsupportedModelError
from byoc_mlir.runtime.program import Array


@register_backend
class ReferenceBackend(Backend):
    """Takes `relay.onnx_node` of proven forms, and nothing else."""

    name: ClassVar[str] = "reference"
    is_fallback_interpreter: ClassVar[bool] = True
    runs_models: ClassVar[bool] = True

    def op_rules(self) -> Mapping[str, Rule]:
        return {"onnx_node": _unproven}

    def interpreter(
        self, model: onnx.ModelProto
    ) -> Callable[[Mapping[str, Array]], Sequence[Array]]:
        from byoc_mlir.backends.reference.lookups import runner_of
        from byoc_mlir.dialects.relay.evaluate.onnx import evaluator_of

        functions = {(function.domain, function.name) for function in model.functions}
        unknown = [
            NodeProblem(node.name, node.op_type, node.domain, _NOT_KNOWN)
            for node in model.graph.node
            if (node.domain, node.op_type) not in functions
            and not onnx.defs.has(node.op_type, domain=node.domain)
        ]
        if unknown:
            raise UnsupportedModelError(unknown)
        for node in model.graph.node:
            for attribute in node.attribute:
                _as_tensor(attribute)
        return runner_of(evaluator_of(model))

    def codegen(self, region: FuncOp, context: CodegenContext) -> Blob:
        from byoc_mlir.backends.carried_nodes import renamed_node
        from byoc_mlir.backends.reference.runtime import ReferenceModule

        names: dict[SSAValue, str] = {}
        names.update((argument, f"in{i}") for i, argument in enumerate(region.body.block.args))
        inputs = list(names.values())
        nodes: list[onnx.NodeProto] = []
        opsets: dict[str, int] = {}
        details: list[OpDetail] = []
        outputs: list[str] = []
        for op in region.body.block.ops:
            if isinstance(op, ConstantOp):
                names[op.output] = f"c{len(nodes)}"
                tensor = numpy_helper.from_array(op.array)
                nodes.append(
                    onnx.helper.make_node("Constant", [], [names[op.output]], value=tensor)
                )
                opsets.setdefault("", onnx.defs.onnx_opset_version())
            elif isinstance(op, OnnxNodeOp):
                nodes.append(renamed_node(op, names, f"v{len(nodes)}"))
                opsets[op.domain.data] = op.opset.value.data
                details.append(OpDetail(node_names(op), "onnx.reference"))
            elif isinstance(op, func.ReturnOp):
                outputs = [names[value] for value in op.operands]
        function = onnx.helper.make_function(
            "byoc",
            region.sym_name.data,
            inputs,
            outputs,
            nodes,
            [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()],
        )
        return Blob.of(ReferenceModule(function), details)


def _unproven(op: Operation) -> str | None:
    from byoc_mlir.dialects.relay.evaluate.proven import unproven

    assert isinstance(op, OnnxNodeOp)
    return unproven(op.proto, op.opset.value.data)


_NOT_KNOWN = "no target takes it, and ONNX's evaluator does not know it; name a target that does"


def _as_tensor(attribute: onnx.AttributeProto) -> None:
    """Replaces the text of a Constant by a tensor, because the evaluator gives the two forms
    different types.
    """
    if attribute.name not in ("value_string", "value_strings"):
        return
    is_scalar = attribute.name == "value_string"
    texts = [attribute.s] if is_scalar else list(attribute.strings)
    tensor = onnx.TensorProto(data_type=onnx.TensorProto.STRING, string_data=texts)
    tensor.dims.extend([] if is_scalar else [len(texts)])
    attribute.CopyFrom(onnx.helper.make_attribute("value", tensor))
