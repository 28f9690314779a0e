"""Models that take or give sequences or optionals: compiled once for each structure."""

from __future__ import annotations

from collections.abc import Callable

from onnx import ModelProto

from byoc_mlir.compiler.source import Source
from byoc_mlir.frontend.inputs import model_inputs
from byoc_mlir.frontend.maps import map_rows, without_maps
from byoc_mlir.frontend.structures import (
    flattened_model,
    is_structured,
    map_keys,
    output_kinds,
)
from byoc_mlir.runtime import Executable
from byoc_mlir.runtime.executables.structured import StructuredExecutable, Structures
from byoc_mlir.tensors import StructureInfo


def compile_structured(
    source: Source, compile_source: Callable[[Source], Executable]
) -> StructuredExecutable | None:
    """The executable of a model that takes or gives more than tensors, `None` for other models.

    Args:
        compile_source: compiles a model that takes tensors.
    """
    model = source.model
    if not isinstance(model, ModelProto) or not is_structured(model):
        return None

    rows = map_rows(model)
    tensors_only = without_maps(model, rows)

    def compile_flat(structures: Structures) -> Executable:
        flat = flattened_model(tensors_only, structures)
        reader = source.tensors.for_another()
        return compile_source(Source(model_inputs(flat), source.outputs, flat, reader))

    takes_tensors = not any(
        isinstance(info, StructureInfo) and info.name not in rows for info in source.inputs
    )
    outputs, keys = output_kinds(model), map_keys(model)
    only = compile_flat({}) if takes_tensors else None
    return StructuredExecutable(source.inputs, outputs, compile_flat, rows, keys, only)
