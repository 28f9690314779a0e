"""The C header of an exported model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from byoc_mlir.artifact.names import unique_identifiers
from byoc_mlir.runtime.program import Program, TensorSpec

ERROR_CODES = {
    "OK": "success",
    "ERROR_USAGE": "a null pointer, a negative number of threads, or no init before run",
    "ERROR_CPU": "the processor lacks a feature that the code uses",
    "ERROR_LIBRARY": "a shared library is missing or too old",
    "ERROR_PYTHON": "a part of the model runs in Python; use byoc_mlir.load",
    "ERROR_MEMORY": "out of memory",
    "ERROR_LOAD": "the code of a region could not be set up",
    "ERROR_RUN": "the code of a region failed",
}
"""In the order of their numbers, from 0."""

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
"""How C sees a type that it lacks (`bool`, `float16`, `bfloat16`, `int4`): its bits."""


@dataclass(frozen=True)
class Parameter:
    """A tensor as a parameter of the C function `run`."""

    spec: TensorSpec
    name: str
    is_output: bool

    @property
    def declaration(self) -> str:
        """`const float *data`."""
        constant = "" if self.is_output else "const "
        return f"{constant}{c_type(self.spec)} *{self.name}"


def parameters(program: Program) -> tuple[Parameter, ...]:
    """The tensors of a program as C parameters, with names that C takes."""
    specs = [*program.inputs, *program.outputs]
    names = unique_identifiers([spec.name for spec in specs])
    count = len(program.inputs)
    return tuple(
        Parameter(spec, name, index >= count)
        for index, (spec, name) in enumerate(zip(specs, names, strict=True))
    )


def header(program: Program, name: str) -> str:
    """The text of `model.h`; `name` is the prefix of all that it declares."""
    tensors = parameters(program)
    upper = name.upper()
    codes = [
        f"  {upper}_{code} = {number}, /* {meaning} */"
        for number, (code, meaning) in enumerate(ERROR_CODES.items())
    ]
    lines = [
        f"/* {name}: a model compiled by byoc_mlir. Any thread may call its functions. */",
        "",
        f"#ifndef BYOC_{upper}_H",
        f"#define BYOC_{upper}_H",
        "",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"#define {upper}_THREADS {program.threads} /* that the model was compiled for */",
        *_constants(upper, tensors),
        "",
        f"enum {name}_status {{",
        *codes,
        "};",
        "",
        "/* Opens the libraries that the model needs and sets it up; 0 threads: as compiled.",
        " * A second call is counted, and changes nothing. */",
        f"int {name}_init(int threads);",
        "",
        "/* Runs the model. Tensors are dense and row-major; outputs are the caller's memory:",
        " *",
        *(f" *   {tensor.name}: {_described(tensor)}" for tensor in tensors),
        " */",
        f"int {name}_run({run_parameters(tensors)});",
        "",
        "/* Ends what one init began; the last one frees all, and nothing may be running then. */",
        f"void {name}_shutdown(void);",
        "",
        "/* What went wrong in the last call of this thread that did not return 0. */",
        f"const char *{name}_error(void);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def run_parameters(tensors: Sequence[Parameter]) -> str:
    """The parameters of `run`, in the order of `tensors`."""
    return ", ".join(tensor.declaration for tensor in tensors) or "void"


def c_type(spec: TensorSpec) -> str:
    """The C type of a tensor's elements."""
    return _C_TYPES.get(spec.dtype.name) or _BITS[spec.dtype.itemsize]


def _constants(prefix: str, tensors: Sequence[Parameter]) -> list[str]:
    return [
        f"#define {prefix}_{tensor.name.upper()}_ELEMENTS {_elements(tensor.spec)}"
        for tensor in tensors
    ]


def _elements(spec: TensorSpec) -> int:
    count = 1
    for size in spec.shape:
        count *= size
    return count


def _described(tensor: Parameter) -> str:
    kind = "output" if tensor.is_output else "input"
    shape = ", ".join(map(str, tensor.spec.shape))
    quoted = tensor.spec.name.replace("*/", "* /").replace("/*", "/ *").replace("\n", " ")
    return f"{kind} '{quoted}', {tensor.spec.dtype.name} [{shape}]"
