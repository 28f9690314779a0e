"""A backend that hands regions to ONNX Runtime as ONNX models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import ClassVar, cast

from onnx import ModelProto
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from byoc_mlir.backends.base import Backend, Blob, CodegenContext, OpDetail, Rule
from byoc_mlir.backends.options import Option
from byoc_mlir.backends.region import nodes_of
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import relay_name, tensor_type
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.runtime.program import Array


class OnnxRuntimeBackend(Backend):
    """Backend for the ops that `EXPORTS` can write as ONNX."""

    name: ClassVar[str] = "onnxruntime"
    runs_models: ClassVar[bool] = True
    options: ClassVar[Mapping[str, Option]] = {
        "optimise": Option(True, "enables ONNX Runtime's graph optimisations"),
    }

    def unavailable(self) -> str | None:
        if find_spec("onnxruntime") is None:
            return "there is no ONNX Runtime; install it with `pip install onnxruntime`"
        return None

    def describe(self) -> str:
        from importlib.metadata import version

        return f"ONNX Runtime {version('onnxruntime')}"

    def op_rules(self) -> Mapping[str, Rule]:
        from byoc_mlir.backends.onnxruntime.export import EXPORTS

        return {**dict.fromkeys(EXPORTS, _rule), "onnx_node": _carried}

    def interpreter(self, model: ModelProto) -> Callable[[Mapping[str, Array]], Sequence[Array]]:
        from byoc_mlir.backends.onnxruntime.runtime import open_session

        run = open_session(model.SerializeToString(), 1, bool(self.settings["optimise"])).run
        return lambda inputs: cast("Sequence[Array]", run(None, dict(inputs)))

    def codegen(self, region: FuncOp, context: CodegenContext) -> Blob:
        from byoc_mlir.backends.onnxruntime.export import export_region
        from byoc_mlir.backends.onnxruntime.runtime import OnnxRuntimeModule

        module = OnnxRuntimeModule(
            export_region(region).SerializeToString(),
            context.threads,
            bool(self.settings["optimise"]),
        )
        module.get_function(region.sym_name.data)  # what it cannot run goes back to the host
        details = [OpDetail(node_names(op), "ONNX Runtime") for op in nodes_of(region)]
        return Blob.of(module, details)


def _rule(op: Operation) -> str | None:
    from byoc_mlir.backends.onnxruntime.export import EXPORTS, element_type

    for value in (*op.operands, *op.results):
        if element_type(value) is None:
            return f"ONNX has no tensors of {tensor_type(value).element_type}"
        if not tensor_type(value).has_static_shape():
            return f"only static shapes are supported, found {value.type}"
    return EXPORTS[relay_name(op)].refuse(op)


def _carried(op: Operation) -> str | None:
    """Accepts carried ONNX nodes of ONNX Runtime's own op domains."""
    from byoc_mlir.backends.onnxruntime.runtime import onnxruntime_ops

    assert isinstance(op, OnnxNodeOp)
    domain = op.domain.data
    if domain == "":
        return "ops of ONNX itself that are carried along are the fallback interpreter's"
    if (domain, op.op_type.data) not in onnxruntime_ops():
        return f"ONNX Runtime has no op {domain}.{op.op_type.data}"
    return None
