"""Shapes that a model declares for its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from byoc_mlir.dims import Size
from byoc_mlir.frontend.inputs import BoundInput, model_inputs

Declared = Mapping[str, tuple[Size | None, ...]]


def declared_shapes(model: onnx.ModelProto, inputs: Sequence[BoundInput]) -> Declared:
    """Returns the declared shapes of the outputs that are tensors of a declared rank, by name.

    A symbolic dimension is the size that the inputs bind to its name; `None` if they do not bind
    the name.
    """
    sizes = {
        name: size
        for info, bound in zip(model_inputs(model), inputs, strict=True)
        for name, size in zip(info.shape, bound.shape, strict=True)
        if isinstance(name, str)
    }
    return {
        output.name: tuple(
            dim.dim_value if dim.HasField("dim_value") else sizes.get(dim.dim_param)
            for dim in output.type.tensor_type.shape.dim
        )
        for output in model.graph.output
        if output.type.tensor_type.HasField("shape")
    }
