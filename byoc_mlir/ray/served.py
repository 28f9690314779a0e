"""What is served and scored with: a model as requests and rows see it."""

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
"""The extra of this package that installs Ray."""


class Model(Protocol):
    """What runs: an `Executable`, or something of another library that looks like one."""

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """What it takes."""
        ...

    def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]:
        """The outputs by name.

        Raises:
            ByocError: the inputs are wrong, or running them failed.
        """
        ...


@dataclass(frozen=True)
class Rows:
    """How the inputs of a model are made of rows."""

    count: int | None
    """The rows of each run, where the model says; `None` where it is any number."""

    @staticmethod
    def of(inputs: Sequence[TensorInfo]) -> Rows | None:
        """`None` where the inputs have no common first dimension that is none but the rows'."""
        firsts = {info.shape[0] if info.shape else 0 for info in inputs}
        first = firsts.pop() if len(firsts) == 1 else 0
        if isinstance(first, int):
            return Rows(first) if first else None
        names = {word for info in inputs for size in info.shape[1:] for word in _words(size)}
        return Rows(None) if names.isdisjoint(_words(first)) else None


def _words(size: int | str) -> Sequence[str]:
    """The names in the text of a size."""
    return re.findall(r"[^\W\d]\w*", str(size))


def check_tensors(inputs: Sequence[TensorInfo]) -> None:
    """Refuses models that take more than tensors.

    Raises:
        UnsupportedModelError: some inputs are sequences, optionals or maps; it lists them.
    """
    problems = [
        NodeProblem(info.name, f"input, {info.kind}", "", "requests and rows have tensors alone")
        for info in inputs
        if isinstance(info, StructureInfo)
    ]
    if problems:
        raise UnsupportedModelError(problems)


def open_model(path: str | Path, **options: Any) -> Model:
    """A compiled model: loaded from a `.so` file, else compiled.

    Args:
        options: those of `compile`; of a file that is compiled, `threads` alone.

    Raises:
        ByocError: what `load` and `compile` raise.
    """
    import byoc_mlir

    if Path(path).suffix == ".so":
        return byoc_mlir.load(path, options.get("threads"))
    return byoc_mlir.compile(path, **options)


def output_tensors(path: str | Path, model: Model) -> Sequence[TensorInfo]:
    """What a model in a file gives; sizes that the file does not say are `?`.

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
    """Lets a model be compiled before the first request, as far as shapes are known: for zeros, of
    one row and of two.
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
