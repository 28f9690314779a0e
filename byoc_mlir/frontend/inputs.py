"""Inputs of a graph: their types, and symbolic dimensions bound to numbers."""

from __future__ import annotations

import operator
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from byoc_mlir.dims import Size, symbol
from byoc_mlir.errors import (
    InvalidInputError,
    InvalidModelError,
    NodeProblem,
    UnsupportedModelError,
)
from byoc_mlir.frontend.structures import kind_of, tensor_type_of
from byoc_mlir.tensors import StructureInfo, TensorInfo


@dataclass(frozen=True)
class BoundInput:
    """Input of `@main`; an unbound dimension is a symbol."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[Size, ...]

    @property
    def info(self) -> TensorInfo:
        """Returns the input as the user sees it."""
        return TensorInfo(self.name, self.dtype, size_names(self.shape))


def size_names(sizes: Sequence[Size]) -> tuple[int | str, ...]:
    """Returns sizes in the form of a `TensorInfo`: symbolic sizes become text."""
    return tuple(size if isinstance(size, int) else str(size) for size in sizes)


def model_inputs(model: onnx.ModelProto) -> tuple[TensorInfo, ...]:
    """Returns the inputs that are not initializers, in order; symbolic dimensions are names.

    A dimension without size or name is called `input[axis]`. So is a dimension with a negative
    size, or with a placeholder as name (`?`, `None`, `unk__12`).

    Raises:
        InvalidModelError: an input has no shape.
        UnsupportedModelError: an input is neither a tensor nor made of tensors.
    """
    initializers = {tensor.name for tensor in model.graph.initializer}
    return tuple(
        _tensor_info(value) for value in model.graph.input if value.name not in initializers
    )


def symbolic_inputs(model: onnx.ModelProto) -> tuple[BoundInput, ...]:
    """Returns the inputs of the model, with a symbol for each symbolic dimension.

    Raises:
        UnsupportedModelError: an input is not a tensor.
    """
    return tuple(
        BoundInput(
            info.name,
            info.dtype,
            tuple(size if isinstance(size, int) else symbol(size) for size in info.shape),
        )
        for info in _tensor_inputs(model)
    )


def sizes_of_symbols(
    model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]
) -> Mapping[str, int]:
    """Returns the symbols' sizes for given input shapes; raises the same errors as
    `bind_inputs`.
    """
    bound = bind_inputs(model, shapes)
    return {
        name: operator.index(size)
        for info, given in zip(model_inputs(model), bound, strict=True)
        for name, size in zip(info.shape, given.shape, strict=True)
        if isinstance(name, str)
    }


def _tensor_inputs(model: onnx.ModelProto) -> tuple[TensorInfo, ...]:
    infos = model_inputs(model)
    for info in infos:
        if isinstance(info, StructureInfo):
            reason = "its structure must be given: see `flattened_model`"
            raise UnsupportedModelError([NodeProblem(info.name, info.kind, "", reason)])
    return infos


def bind_inputs(
    model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]
) -> tuple[BoundInput, ...]:
    """Returns the inputs of the model with all dimensions known.

    Args:
        shapes: the full shape of each input that has symbolic dimensions.

    Raises:
        InvalidInputError: a dimension is unbound or bound to two numbers; or `shapes` has an
            unknown name, or another size than a fixed dimension.
    """
    infos = _tensor_inputs(model)
    _check_names(shapes, [info.name for info in infos])
    symbols: dict[str, int] = {}
    for info in infos:
        if info.name in shapes:
            _bind(info, tuple(shapes[info.name]), symbols)
    missing = [
        info for info in infos if any(isinstance(d, str) and d not in symbols for d in info.shape)
    ]
    if missing:
        listed = "; ".join(str(info) for info in missing)
        first = missing[0]
        example = ", ".join(str(d) if isinstance(d, int) else "1" for d in first.shape)
        raise InvalidInputError(
            f"symbolic dimensions are not bound: {listed}; give the shapes, as in"
            f" shapes={{{first.name!r}: ({example},)}}"
        )
    return tuple(
        BoundInput(
            info.name,
            info.dtype,
            tuple(d if isinstance(d, int) else symbols[d] for d in info.shape),
        )
        for info in infos
    )


def _check_names(shapes: Mapping[str, Sequence[int]], names: Container[str]) -> None:
    for name in shapes:
        if name not in names:
            raise InvalidInputError(f"the model has no input '{name}'; its inputs are {names}")


def _bind(info: TensorInfo, shape: tuple[int, ...], symbols: dict[str, int]) -> None:
    if len(shape) != len(info.shape):
        raise InvalidInputError(
            f"input {info} has rank {len(info.shape)}, the shape given is {list(shape)}"
        )
    for axis, (declared, size) in enumerate(zip(info.shape, shape, strict=True)):
        known = symbols.setdefault(declared, size) if isinstance(declared, str) else declared
        if known != size or size < 0:
            what = str(known)
            if isinstance(declared, str):
                what = f"'{declared}', bound to {known} (a name stands for one size in all inputs)"
            raise InvalidInputError(
                f"input {info}: dimension {axis} is {what}, the shape given is {list(shape)}"
            )


def _tensor_info(value: onnx.ValueInfoProto) -> TensorInfo:
    if value.type.WhichOneof("value") is None:
        raise InvalidModelError(f"input '{value.name}' has no type")
    kind, tensor = kind_of(value.type), tensor_type_of(value.type)
    if kind == "maps":
        reason = "maps are not supported as inputs"
        raise UnsupportedModelError([NodeProblem(value.name, "input", "", reason)])
    if kind != "tensor":
        return StructureInfo(value.name, _dtype(value.name, tensor.elem_type), (), kind)
    if not tensor.HasField("shape"):
        raise InvalidModelError(f"input '{value.name}' has no shape, not even a rank")
    shape = tuple(
        _dimension(dimension, f"{value.name}[{axis}]")
        for axis, dimension in enumerate(tensor.shape.dim)
    )
    return TensorInfo(value.name, _dtype(value.name, tensor.elem_type), shape)


_PLACEHOLDERS = frozenset({"", "?", "-1", "None"})
_PLACEHOLDER_PREFIX = "unk__"


def _dimension(dimension: onnx.TensorShapeProto.Dimension, unnamed: str) -> int | str:
    """Returns the size or the name of a dimension, or `unnamed` if it has neither."""
    if dimension.HasField("dim_value"):
        return dimension.dim_value if dimension.dim_value >= 0 else unnamed
    name = dimension.dim_param
    is_placeholder = name in _PLACEHOLDERS or name.startswith(_PLACEHOLDER_PREFIX)
    return unnamed if is_placeholder else name


def _dtype(name: str, element_type: int) -> np.dtype[Any]:
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element_type))
    except KeyError as error:
        raise InvalidModelError(f"input '{name}' has no element type {element_type}") from error
