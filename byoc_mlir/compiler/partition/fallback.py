"""Fallback: nodes that neither the host nor a target can run go to a backend that runs any node,
with a warning.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.backends import Backend, backend_names, get_backend
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.errors import (
    BackendError,
    FallbackForbiddenError,
    NodeProblem,
    UnsupportedModelError,
)
from byoc_mlir.names import printable
from byoc_mlir.transforms.annotate_target import ask_rule
from byoc_mlir.warned import warn


def targets_with_interpreter(module: ModuleOp, options: CompileOptions) -> tuple[str, ...]:
    """Returns the targets; the fallback interpreter follows as the last one, if some nodes need it.

    Raises:
        FallbackForbiddenError: some nodes need it, and `fallback` is `"forbid"`.
        BackendError: some nodes need it, and no backend is a fallback interpreter.
        UnsupportedModelError: the fallback interpreter refuses some of these nodes.
    """
    targets = [get_backend(target) for target in options.targets]
    carried = [op for op in module.walk() if isinstance(op, OnnxNodeOp)]
    nodes = [op for op in carried if all(_refusal(target, op) for target in targets)]
    if not nodes:
        return options.targets
    return (*options.targets, interpreter_for(nodes, options))


def _refusal(backend: Backend, op: OnnxNodeOp) -> str | None:
    """Returns why a backend refuses the ONNX node of an op, or `None`."""
    return ask_rule(backend.name, backend.op_rules(), op)


def interpreter_for(nodes: Sequence[OnnxNodeOp], options: CompileOptions) -> str:
    """Returns the fallback interpreter, and warns of the nodes that it runs.

    Args:
        nodes: nodes without native code.

    Raises:
        UnsupportedModelError: the interpreter refuses some of the nodes; the error lists all of
            them.
        FallbackForbiddenError: `fallback` is `"forbid"`.
        BackendError: no backend is a fallback interpreter.
    """
    name = _fallback_interpreter(options)
    backend = get_backend(name)
    problems = [_problem(op, reason) for op in nodes if (reason := _refusal(backend, op))]
    if problems:
        raise UnsupportedModelError(problems)
    each = dict.fromkeys(f"  {', '.join(node_names(op))} ({op.op_type.data})" for op in nodes)
    listed = "\n".join(map(printable, each))
    message = f"{len(nodes)} node(s) have no native code, and run in the backend '{name}'"
    if options.fallback == "forbid":
        raise FallbackForbiddenError(f"{message}, which is forbidden:\n{listed}")
    if options.fallback == "warn":
        warn(f"{message}, which is slow:\n{listed}")
    return name


def _problem(op: OnnxNodeOp, reason: str) -> NodeProblem:
    why = f"{op.reason.data}; {reason}" if op.reason.data else reason
    return NodeProblem(", ".join(node_names(op)), op.op_type.data, op.domain.data, why)


def _fallback_interpreter(options: CompileOptions) -> str:
    for name in backend_names():
        if name in options.disable:
            continue
        backend = get_backend(name)
        if backend.is_fallback_interpreter and backend.unavailable() is None:
            return name
    raise BackendError("the model has nodes without native code, and no backend runs such nodes")
