"""Output arrays that the caller provides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from byoc_mlir.boundary import check_argument
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.instance import Instance
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.system.memory import address_of


def destinations(
    instance: Instance,
    shapes: Sequence[tuple[Shape, np.dtype[Any]]],
    inputs: Sequence[Array],
    out: Mapping[str, Any],
) -> list[Array]:
    """Returns the arrays for all outputs of a run: the arrays in `out`, and new arrays for the
    other outputs.

    Args:
        shapes: shapes and types of all outputs.
        inputs: checked inputs of the run.

    Raises:
        InvalidInputError: an array does not fit the output.
        OutOfMemoryError: there is not enough memory for the new arrays.
    """
    program = instance.program
    kinds = dict(zip((spec.name for spec in program.outputs), shapes, strict=True))
    check_names(out, kinds)
    out = instance.handles(out)
    for name, (shape, dtype) in kinds.items():
        if name in out:
            _check(name, out[name], dtype, shape)
    _check_apart(out, _read_apart(program, out, inputs))
    new = instance.new_outputs({name: kind for name, kind in kinds.items() if name not in out})
    return [out[name] if name in out else new[name] for name in kinds]


def _read_apart(
    program: Program, out: Mapping[str, Array], inputs: Sequence[Array]
) -> Iterator[Array]:
    """Yields the inputs that must not share memory with an output: all inputs except those that
    their outputs may overwrite.
    """
    overwritten = {
        (alias, address_of(out[name])) for name, alias in program.aliases.items() if name in out
    }
    for spec, given in zip(program.inputs, inputs, strict=True):
        if (spec.name, address_of(given)) not in overwritten:
            yield given


def copied_into(values: Mapping[str, Any], out: Mapping[str, Any]) -> dict[str, Any]:
    """Copies the outputs of a run to the arrays in `out`; returns all outputs.

    Raises:
        InvalidInputError: an array does not fit the output.
    """
    for name, destination in out.items():
        value = values[name]
        if not isinstance(value, np.ndarray):
            raise InvalidInputError(
                f"out has '{name}', which is no tensor but a {type(value).__name__}; omit it"
            )
        _check(name, destination, value.dtype, value.shape)
    _check_apart(out)
    for name, destination in out.items():
        np.copyto(destination, values[name])
    return {name: out.get(name, value) for name, value in values.items()}


def check_names(out: Mapping[str, Any], names: Iterable[str]) -> None:
    """Checks that the model has the outputs in `out`.

    Raises:
        InvalidInputError: an output is unknown.
    """
    accepted = "a dictionary of arrays by the outputs' names, or None"
    check_argument("out", out, Mapping, accepted, InvalidInputError)
    known = dict.fromkeys(names)
    unknown = [str(name) for name in out if name not in known]
    if unknown:
        raise InvalidInputError(
            f"out has {', '.join(unknown)}; the model's outputs are {', '.join(known)}"
        )


def _check(name: str, array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray):
        raise InvalidInputError(
            f"out: '{name}' must be a numpy array, found {type(array).__name__}"
        )
    if array.dtype != dtype or array.shape != shape:
        raise InvalidInputError(
            f"out: '{name}' must be {dtype}{list(shape)}, found {array.dtype}{list(array.shape)}"
        )
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise InvalidInputError(f"out: '{name}' must be a C-contiguous array that can be written")


def _check_apart(out: Mapping[str, Array], inputs: Iterable[Array] = ()) -> None:
    """Checks that outputs share no memory, nor any with inputs, since code may write to an output
    before it reads them.
    """
    spans = [
        (address_of(array), array.nbytes, name)
        for name, array in (*out.items(), *((None, one) for one in inputs))
        if array.nbytes
    ]
    latest, output_end, input_end = "", 0, 0
    for start, size, name in sorted(spans, key=itemgetter(0)):
        if name is None:
            input_end = max(input_end, start + size)
        elif start < output_end:
            raise InvalidInputError(f"out: '{latest}' and '{name}' are in the same memory")
        else:
            latest, output_end = name, start + size
        if min(input_end, output_end) > start:
            raise InvalidInputError(f"out: '{latest}' is in memory that an input has; give a copy")
