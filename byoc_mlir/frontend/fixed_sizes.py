"""Symbolic dimensions that the caller fixes before compilation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy

from onnx import ModelProto, TensorShapeProto, ValueInfoProto

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.frontend.inputs import model_inputs
from byoc_mlir.tensors import TensorInfo


def with_fixed_sizes(model: ModelProto, sizes: Mapping[str, int]) -> ModelProto:
    """Returns a copy of the model in which some symbolic dimensions are fixed.

    Args:
        sizes: size of each dimension to fix, by its name in inputs or outputs. A name may occur in
            outputs only, such as the length of a cache that a run returns.

    Raises:
        InvalidInputError: the model has no symbolic dimension of a name.
    """
    fixed = deepcopy(model)
    named = [
        *_of_inputs(fixed),
        *_of_values(fixed.graph.output),
        *_of_values(fixed.graph.value_info),
    ]
    known = sorted({name for name, _ in named if name})
    if unknown := sorted(sizes.keys() - set(known)):
        raise InvalidInputError(
            f"there is no symbolic dimension {', '.join(unknown)}; the model's are"
            f" {', '.join(known) or 'none'}"
        )
    for name, dimension in named:
        if name in sizes:
            dimension.dim_value = sizes[name]
    return fixed


_Dimension = TensorShapeProto.Dimension


def _of_inputs(model: ModelProto) -> Iterator[tuple[str, _Dimension]]:
    """Yields names and symbolic dimensions of inputs; an unnamed dimension gets a generated
    name.
    """
    infos = {info.name: info for info in model_inputs(model)}
    for value in model.graph.input:
        info = infos.get(value.name)
        if isinstance(info, TensorInfo):
            for name, dimension in zip(info.shape, value.type.tensor_type.shape.dim, strict=True):
                if isinstance(name, str):
                    yield name, dimension


def _of_values(values: Iterable[ValueInfoProto]) -> Iterator[tuple[str, _Dimension]]:
    for value in values:
        for dimension in value.type.tensor_type.shape.dim:
            yield dimension.dim_param, dimension
