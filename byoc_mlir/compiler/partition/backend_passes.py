"""Passes of backends and of users, on the whole module before it is partitioned."""

from __future__ import annotations

import time
from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from byoc_mlir.backends import Backend
from byoc_mlir.compiler.request import Fallback
from byoc_mlir.compiler.source import checked_module
from byoc_mlir.dialects.boundary import node_of
from byoc_mlir.errors import (
    BackendError,
    ByocError,
    CompilationError,
    FallbackForbiddenError,
    LimitExceededError,
)
from byoc_mlir.ir_dump import apply_pass
from byoc_mlir.lowering.llvm_ir.codegen import Timing

_DIALECTS = ("relay", "byoc", "func", "builtin")
"""Dialects that the host can compile if no backend takes the op."""


def run_module_passes(
    context: Context, module: ModuleOp, backends: Sequence[Backend], fallback: Fallback
) -> Sequence[str]:
    """Runs each backend's passes on the module, and returns a message for each that failed.

    Each pass runs on a copy of the module. If it fails, the copy is discarded.

    Raises:
        FallbackForbiddenError: a pass failed, and `fallback` is `"forbid"`.
    """
    problems: list[str] = []
    for backend in backends:
        for pass_ in backend.module_passes():
            try:
                changed = run_on_copy(context, module, pass_)
            except Exception as error:  # any exception of a backend is a refusal
                problem = f"pass {pass_.name} of backend '{backend.name}' failed: {error}"
                if fallback == "forbid":
                    raise FallbackForbiddenError(problem) from error
                problems.append(problem)
                continue
            _take_over(module, changed)
    return problems


def run_user_passes(
    context: Context, module: ModuleOp, passes: Sequence[ModulePass], timing: Timing
) -> None:
    """Runs passes that the user named on the module.

    Args:
        timing: receives the time of each pass.

    Raises:
        CompilationError: a pass failed; the error names the pass and the ONNX node.
        LimitExceededError: the module exceeds a limit.
    """
    for pass_ in passes:
        start = time.perf_counter()
        try:
            _take_over(module, run_on_copy(context, module, pass_))
        except LimitExceededError:
            raise
        except Exception as error:  # a user's code
            detail = str(error) if isinstance(error, ByocError) else repr(error)
            failed = CompilationError(f"pass '{pass_.name}' failed: {detail}")
            failed.locate(f"pass {pass_.name}", node_of(error))
            raise failed from error
        timing(pass_.name, time.perf_counter() - start)


def _take_over(module: ModuleOp, changed: ModuleOp) -> None:
    module.body.detach_block(0)
    module.body.add_block(changed.body.detach_block(0))


def run_on_copy(context: Context, module: ModuleOp, pass_: ModulePass) -> ModuleOp:
    """Runs an external pass on a copy of the module, and checks the result.

    Raises:
        InvalidModelError: the result is not valid.
        BackendError: the pass changed the functions' types, or created ops that the host cannot
            compile.
        Exception: any exception of the pass.
    """
    copy = module.clone()
    apply_pass(pass_, context, copy)
    checked_module(copy)
    if _signatures(copy) != _signatures(module):
        raise BackendError("it changed the functions, or their types")
    for op in copy.walk():
        if op.name.partition(".")[0] not in _DIALECTS:
            raise BackendError(f"it made a {op.name}, which the host cannot compile")
    return copy


def _signatures(module: ModuleOp) -> dict[str, FunctionType]:
    functions = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return {op.sym_name.data: op.function_type for op in functions}
