"""The executable of a model that runs in one piece."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.artifact import write
from byoc_mlir.errors import InputValuesNeededError
from byoc_mlir.limits import Limits
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.executables.compiled import CompiledExecutable
from byoc_mlir.runtime.executables.sized_executable import SizedExecutable
from byoc_mlir.runtime.executables.specialising import Specialiser, SpecialisingExecutable
from byoc_mlir.runtime.system.forks import on_live_threads
from byoc_mlir.tensors import TensorInfo


def compile_ahead(
    inputs: Sequence[TensorInfo],
    outputs: Sequence[str],
    specialiser: Specialiser,
    limits: Limits,
) -> Executable:
    """The executable of a model: compiled now, if its shapes are known and depend on no values.

    Args:
        inputs: what the model takes, in order.
        outputs: the names of what it gives, in order.
        specialiser: compiles it.
        limits: say how much memory programs may hold that are not in use.
    """
    if not all(info.is_static for info in inputs):
        return SizedExecutable(inputs, outputs, specialiser, write, limits.kept_bytes)
    later = SpecialisingExecutable(inputs, outputs, specialiser, write, limits.kept_bytes)
    shapes = {info.name: tuple(map(int, info.shape)) for info in inputs}
    try:
        program = on_live_threads(specialiser.specialise_shapes)(shapes)
    except InputValuesNeededError:
        return later
    return CompiledExecutable(program, write)
