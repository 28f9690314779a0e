"""What nothing here can compile runs through the ONNX reference evaluator, with a warning."""

from __future__ import annotations

import warnings

from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.backends import Target
from byoc_mlir.backends.reference import ReferenceBackend
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.errors import FallbackForbiddenError


def targets_with_net(module: ModuleOp, options: CompileOptions) -> tuple[str, ...]:
    """The targets, and behind them the safety net if some nodes need it.

    Raises:
        FallbackForbiddenError: they do, and `fallback` is `"forbid"`.
    """
    nodes = [op for op in module.walk() if isinstance(op, OnnxNodeOp)]
    name = ReferenceBackend.name
    if not nodes or name in {Target.parse(target).name for target in options.targets}:
        return options.targets
    listed = "\n".join(f"  {', '.join(node_names(op))} ({op.op_type.data})" for op in nodes)
    message = f"{len(nodes)} node(s) have no native code, and run in the ONNX reference evaluator"
    if options.fallback == "forbid":
        raise FallbackForbiddenError(f"{message}, which is forbidden:\n{listed}")
    if options.fallback == "warn":
        warnings.warn(f"{message}, which is slow:\n{listed}", stacklevel=2)
    return (*options.targets, name)
