"""Tiered execution: models that run in the interpreter tier while another process compiles them, so
that the first run does not wait for the compiler.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import partial

from onnx import ModelProto, checker

from byoc_mlir.artifact import write
from byoc_mlir.boundary import boundary
from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.execution.compiling_process import CompilingProcess
from byoc_mlir.compiler.execution.known import compile_cached
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.frontend.files.check import opset_versions
from byoc_mlir.frontend.inputs import model_inputs
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.system.threads import available_threads
from byoc_mlir.tensors import TensorInfo

_SIZES_FROM_VALUES = frozenset(("Compress", "NonMaxSuppression", "NonZero", "Unique"))
"""Ops whose result shapes depend on values."""


def answering_at_once(
    snapshot: Snapshot, cached: CachedModel, process: subprocess.Popen[bytes]
) -> Executable | None:
    """Returns the executable with an interpreter tier, or `None` if that is impossible.

    Args:
        snapshot: the model's file.
        cached: the model in the cache, which receives its programs.
        process: process to compile the model.

    Raises:
        InvalidModelError: the file is no model, or the model is invalid.
    """
    with boundary("read"):
        if not _can_be_interpreted(snapshot.message):
            return None
        return _executable(snapshot, CompilingProcess(cached, process), cached)


def _can_be_interpreted(model: ModelProto) -> bool:
    """True if the tier has all ops of the model."""
    from byoc_mlir.interpreter.tier_ops import unknown
    from byoc_mlir.onednn.library import unavailable_reason

    if unavailable_reason():
        return False  # before the nodes are looked at
    return _is_valid(model) and not unknown(model)


def _has_fixed_shapes(model: ModelProto, inputs: Sequence[TensorInfo]) -> bool:
    """True if the model can be compiled without inputs."""
    if any(node.op_type in _SIZES_FROM_VALUES for node in model.graph.node):
        return False
    return all(info.is_static for info in inputs)


def _is_valid(model: ModelProto) -> bool:
    """True if all nodes conform to ONNX; if not, the compiler reports the errors."""
    from byoc_mlir.interpreter.schemas import ONNX_RUNTIME

    context = checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = opset_versions(model)
    try:
        for node in model.graph.node:
            if node.op_type not in ONNX_RUNTIME:  # of which the checker knows nothing
                checker.check_node(node, context)
    except checker.ValidationError:
        return False
    return True


def _executable(
    snapshot: Snapshot, compilation: CompilingProcess, cached: CachedModel
) -> Executable:
    from byoc_mlir.frontend.files.tensors import TensorReader
    from byoc_mlir.interpreter.model import InterpretedModel
    from byoc_mlir.runtime.execution.tier import LoadedTier

    model = snapshot.take(holds_bytes=True)  # they are compiled if the process compiled others
    inputs = model_inputs(model)
    if _has_fixed_shapes(model, inputs):
        compilation.start()
    outputs = [output.name for output in model.graph.output]
    tensors = TensorReader(snapshot.files).graph_tensors(model.graph)
    answer = InterpretedModel(model, tensors, _threads(cached.request.threads)).run
    tier = LoadedTier(inputs, outputs, answer, compilation)
    return Executable(tier, write, partial(compile_cached, cached))


def _threads(asked: int | None) -> int:
    """Returns the threads of a run while the model is compiled: one less, since the compilation
    occupies a core.
    """
    cores = available_threads()
    return max(1, min(asked or cores, cores - 1))
