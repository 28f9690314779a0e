"""C interface of a model: sizes and tensors with C identifiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from byoc_mlir.artifact.names import unique_identifiers
from byoc_mlir.dims import Size, parse_size
from byoc_mlir.runtime.program import Program
from byoc_mlir.tensors import TensorInfo

_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
}
_BITS = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
"""C types of the bits of element types that C lacks (`bool`, `float16`, `bfloat16`, `int4`), by
size in bytes."""


@dataclass(frozen=True)
class Parameter:
    """Tensor as a parameter of the C function `run`."""

    spec: TensorInfo
    name: str
    is_output: bool
    shape: tuple[Size, ...]

    @property
    def declaration(self) -> str:
        """Returns the declaration of the parameter, such as `const float *data`."""
        constant = "" if self.is_output else "const "
        return f"{constant}{c_type(self.spec.dtype)} *{self.name}"


@dataclass(frozen=True)
class Interface:
    """C interface of a program."""

    program: Program
    sizes: Mapping[str, str]
    """C name of each symbol, in the order in which native code takes them."""
    tensors: tuple[Parameter, ...]
    """Inputs, then outputs."""

    @staticmethod
    def of(program: Program) -> Interface:
        """Returns the interface of a program."""
        specs = [*program.inputs, *program.outputs]
        symbols = [] if program.sizes is None else [info.name for info in program.sizes.symbols]
        names = unique_identifiers([*symbols, *(spec.name for spec in specs)])
        tensors = tuple(
            Parameter(spec, name, index >= len(program.inputs), tuple(map(parse_size, spec.shape)))
            for index, (spec, name) in enumerate(zip(specs, names[len(symbols) :], strict=True))
        )
        return Interface(program, dict(zip(symbols, names, strict=False)), tensors)

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        """Returns the output tensors."""
        return tuple(tensor for tensor in self.tensors if tensor.is_output)


def c_type(dtype: np.dtype[Any]) -> str:
    """Returns the C type of a tensor's elements."""
    return _C_TYPES.get(dtype.name) or _BITS[dtype.itemsize]
