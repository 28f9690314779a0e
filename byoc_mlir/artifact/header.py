"""C header of an exported model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from byoc_mlir.artifact.interface import Interface, Parameter
from byoc_mlir.artifact.sizes import c_expression, c_guards, greatest_size
from byoc_mlir.names import printable
from byoc_mlir.runtime.symbolic_sizes import SymbolicSizes

ERROR_CODES = {
    "OK": "success",
    "ERROR_USAGE": "a null pointer, a negative number of threads, or no init before run",
    "ERROR_CPU": "the processor lacks a feature that the code uses",
    "ERROR_LIBRARY": "a shared library is missing or too old",
    "ERROR_PYTHON": "a part of the model runs in Python; use byoc_mlir.load",
    "ERROR_MEMORY": "out of memory",
    "ERROR_LOAD": "the code of a region could not be set up",
    "ERROR_RUN": "the code of a region failed",
    "ERROR_SHAPE": "sizes that the model was not compiled for",
    "ERROR_VALUE": "a number that the model was given or has computed is not accepted",
}
"""Error codes with their meanings, in the order of their numbers, from 0."""


def header(interface: Interface, name: str) -> str:
    """Returns the text of `model.h`; `name` is the prefix of its declarations."""
    tensors = [tensor.declaration for tensor in interface.tensors]
    parameters = [*_size_parameters(interface), *tensors]
    lines = [
        *_shapes(interface, name),
        "/* Runs the model. Tensors are dense and row-major; outputs are the caller's memory:",
        " *",
        *(f" *   {tensor.name}: {_described(interface, tensor)}" for tensor in interface.tensors),
        *_aliases(interface),
        " */",
        f"int {name}_run({', '.join(parameters) or 'void'});",
    ]
    return framed(lines, name, interface.program.threads, _constants(interface, name.upper()))


def framed(lines: Sequence[str], name: str, threads: int, constants: Sequence[str] = ()) -> str:
    """Returns the text of a header: the given declarations, and the declarations that all models
    have.

    Args:
        name: prefix of the declarations.
        threads: number of threads that the model was compiled for.
        constants: further macros.
    """
    upper = name.upper()
    codes = [
        f"  {upper}_{code} = {number}, /* {meaning} */"
        for number, (code, meaning) in enumerate(ERROR_CODES.items())
    ]
    text = [
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
        f"#define {upper}_THREADS {threads} /* that the model was compiled for */",
        *constants,
        "",
        f"enum {name}_status {{",
        *codes,
        "};",
        "",
        "/* Opens the libraries that the model needs and sets it up; 0 threads: as compiled.",
        " * A second call is counted, and changes nothing. */",
        f"int {name}_init(int threads);",
        "",
        *lines,
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
    return "\n".join(text)


def _shapes(interface: Interface, name: str) -> Sequence[str]:
    """Returns the declaration of the function that computes output shapes; empty for static
    shapes.
    """
    sizes = interface.program.sizes
    if sizes is None:
        return ()
    arrays = [f"int64_t *{tensor.name}" for tensor in interface.outputs]
    parameters = ", ".join([*_size_parameters(interface), *arrays])
    ranks = ", ".join(f"{len(tensor.shape)} for {tensor.name}" for tensor in interface.outputs)
    return [
        "/* The sizes that calls choose:",
        " *",
        *(f" *   {text}" for text in _accepted(sizes, interface)),
        " *",
        f" * Others are {name.upper()}_ERROR_SHAPE. In shapes, floor_div(a, b) is rounded down. */",
        "",
        "/* The shapes of the outputs for such sizes, each written to an array: numbers are",
        f" * {ranks}. A null pointer leaves one out. */",
        f"int {name}_shapes({parameters});",
        "",
    ]


def _aliases(interface: Interface) -> Iterator[str]:
    """Yields comments on the outputs that may share memory with an input."""
    names = {(tensor.is_output, tensor.spec.name): tensor.name for tensor in interface.tensors}
    for output, input_ in interface.program.aliases.items():
        yield f" * {names[True, output]} may be the same memory as {names[False, input_]}."


def _size_parameters(interface: Interface) -> list[str]:
    return [f"int64_t {size}" for size in interface.sizes.values()]


def _accepted(sizes: SymbolicSizes, interface: Interface) -> Sequence[str]:
    """Returns the conditions that input sizes must meet, as comment lines."""
    names = interface.sizes
    ranges = [f"{names[info.name]}: {info.min} to {greatest_size(info)}" for info in sizes.symbols]
    return [*ranges, *c_guards(sizes, names)]


def _constants(interface: Interface, prefix: str) -> list[str]:
    return [
        f"#define {prefix}_{tensor.name.upper()}_ELEMENTS {math.prod(tensor.spec.static_shape)}"
        for tensor in interface.tensors
        if tensor.spec.is_static
    ]


def _described(interface: Interface, tensor: Parameter) -> str:
    kind = "output" if tensor.is_output else "input"
    shape = ", ".join(c_expression(size, interface.sizes) for size in tensor.shape)
    return f"{kind} '{in_comment(tensor.spec.name)}', {tensor.spec.dtype.name} [{shape}]"


def in_comment(text: str) -> str:
    """Returns a text in which comment delimiters are broken up, so that it can stand in a C
    comment.
    """
    return printable(text).replace("*/", "* /").replace("/*", "/ *")
