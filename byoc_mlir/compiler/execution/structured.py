"""Models with sequences or optionals as inputs or outputs: compiled once for each structure."""

from __future__ import annotations

from onnx import ModelProto

from byoc_mlir.compiler.execution.kind import Compilation, PartCompiler
from byoc_mlir.compiler.source import Source, model_source
from byoc_mlir.frontend.maps import map_rows, without_maps
from byoc_mlir.frontend.structures import (
    flattened_model,
    map_keys,
    output_kinds,
)
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.execution.structured import LoadedStructured, Structures
from byoc_mlir.runtime.plan import Structured
from byoc_mlir.tensors import StructureInfo


def with_structures(source: Source, _: Compilation, compile_part: PartCompiler) -> LoadedStructured:
    """Returns a model with inputs or outputs other than tensors.

    Args:
        compile_part: function that compiles a model whose inputs and outputs are tensors.
    """
    model = source.model
    assert isinstance(model, ModelProto)
    rows = map_rows(model)
    tensors_only = without_maps(model, rows)

    def compile_flat(structures: Structures) -> LoadedNode:
        flat = flattened_model(tensors_only, structures)
        return compile_part(model_source(flat, source.outputs, source.tensors.for_another()))

    takes_tensors = not any(
        isinstance(info, StructureInfo) and info.name not in rows for info in source.inputs
    )
    structured = Structured(source.inputs, output_kinds(model), rows, map_keys(model))
    only = compile_flat({}) if takes_tensors else None
    return LoadedStructured(structured, compile_flat, only)
