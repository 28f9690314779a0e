"""Models for serving and scoring: their interface to requests and rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from onnx import ValueInfoProto
from onnx.helper import tensor_dtype_to_np_dtype

from byoc_mlir.errors import InvalidInputError, NodeProblem, UnsupportedModelError
from byoc_mlir.frontend.files.load import parse_model
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.tensors import StructureInfo, TensorInfo

EXTRA = "ray"
"""Extra of this package that installs Ray."""


class Model(Protocol):
    """Interface of a model that runs: an `Executable`, or a similar class of another library."""

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """Returns the model's inputs."""
        ...

    def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Runs the model and returns its outputs by name.

        Raises:
            ByocError: the inputs are wrong, or running them failed.
        """
        ...


@dataclass(frozen=True)
class Rows:
    """Row dimension of a model's inputs: the first dimension, if all inputs share it."""

    count: int | None
    """Number of rows of each run, if the model fixes it; `None` if it may be any number."""

    @staticmethod
    def of(inputs: Sequence[TensorInfo]) -> Rows | None:
        """Returns the row dimension; `None` if the inputs share no first dimension, or another
        dimension depends on it.
        """
        firsts = {info.shape[0] if info.shape else 0 for info in inputs}
        first = firsts.pop() if len(firsts) == 1 else 0
        if isinstance(first, int):
            return Rows(first) if first else None
        names = {word for info in inputs for size in info.shape[1:] for word in _words(size)}
        return Rows(None) if names.isdisjoint(_words(first)) else None


def _words(size: int | str) -> Sequence[str]:
    """Returns the names in the text of a size, such as `n` in `2*n`."""
    return re.findall(r"[^\W\d]\w*", str(size))


def check_tensors(inputs: Sequence[TensorInfo]) -> None:
    """Refuses models with inputs that are not tensors.

    Raises:
        UnsupportedModelError: some inputs are sequences, optionals or maps; the message lists them.
    """
    problems = [
        NodeProblem(info.name, f"input, {info.kind}", "", "requests and rows have tensors alone")
        for info in inputs
        if isinstance(info, StructureInfo)
    ]
    if problems:
        raise UnsupportedModelError(problems)


def open_model(path: str | Path, **options: Any) -> Model:
    """Returns a compiled model: loads a `.so` file, and compiles any other file.

    Args:
        options: options of `compile`; for a `.so` file `threads` alone.

    Raises:
        ByocError: an error of `load` or `compile`.
    """
    import byoc_mlir

    if Path(path).suffix == ".so":
        return byoc_mlir.load(path, options.get("threads"))
    return byoc_mlir.compile(path, **options)


def output_tensors(path: str | Path, model: Model) -> Sequence[TensorInfo]:
    """Returns the outputs of a model in a file; sizes that the file does not declare are `?`.

    Raises:
        InvalidModelError: the file is no model.
        UnsupportedModelError: an output is no tensor.
    """
    if isinstance(model, Executable) and Path(path).suffix != ".onnx":
        is_static = all(info.is_static for info in model.inputs)
        return [
            TensorInfo(one.name, one.dtype, one.shape if is_static else ("?",) * len(one.shape))
            for one in model.program.outputs
        ]
    return [_tensor_info(value) for value in parse_model(path).graph.output]


def _tensor_info(value: ValueInfoProto) -> TensorInfo:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        problem = NodeProblem(value.name, f"output, {kind}", "", "answers have tensors alone")
        raise UnsupportedModelError([problem])
    type_ = value.type.tensor_type
    sizes = [
        one.dim_value if one.HasField("dim_value") and one.dim_value >= 0 else one.dim_param or "?"
        for one in type_.shape.dim
    ]
    return TensorInfo(value.name, np.dtype(tensor_dtype_to_np_dtype(type_.elem_type)), tuple(sizes))


def warm_up(model: Model) -> None:
    """Runs a model on zeros, one row and two rows, so that it is compiled before the first request;
    models with unknown shapes are skipped.
    """
    rows = Rows.of(model.inputs)
    for count in (1, 2) if rows == Rows(None) else (0,):
        shapes = [(count, *info.shape[1:]) if count else info.shape for info in model.inputs]
        if any(isinstance(size, str) for shape in shapes for size in shape):
            return
        zeros = {
            info.name: np.zeros(cast("tuple[int, ...]", shape), info.dtype)
            for info, shape in zip(model.inputs, shapes, strict=True)
        }
        try:
            model.run(zeros)
        except InvalidInputError:
            return  # zeros are nothing that it accepts; it is compiled all the same
