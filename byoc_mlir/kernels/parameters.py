"""Run-time parameters of kernels: named fields, stored in memory as words.

A dataclass over a type variable describes the fields once. For an instance that holds sizes,
`words` returns the words to store. In a generated function, `read` returns an instance that holds
the loaded values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast, get_origin, get_type_hints

from xdsl.ir import SSAValue

from byoc_mlir.dims import Dim, Size
from byoc_mlir.kernels.builder import FunctionBuilder

T = TypeVar("T")


def words(parameters: Any) -> tuple[Size, ...]:
    """Returns the values of all fields in order; a nested dataclass contributes its own fields."""
    return tuple(_words(parameters))


def _words(parameters: Any) -> Iterator[Size]:
    for one in fields(parameters):
        value = getattr(parameters, one.name)
        if isinstance(value, int | Dim):
            yield value
        else:
            yield from _words(value)


def read(function: FunctionBuilder, address: SSAValue, description: type[T]) -> T:
    """Generates the loads of all fields; unused loads disappear when the function is finished.

    If the module is specialised for known parameters, the fields are constants.

    Args:
        function: function that loads the fields.
        address: address of the words.
        description: the dataclass, over `SSAValue`.
    """
    return cast(T, _read(function, address, description, 0)[0])


def _read(
    function: FunctionBuilder, address: SSAValue, description: Any, slot: int
) -> tuple[Any, int]:
    """Returns an instance whose words begin at `slot`, and the slot after it."""
    kind = get_origin(description) or description
    values: dict[str, Any] = {}
    for one in fields(kind):
        nested = _nested(kind)[one.name]
        if nested is None:
            values[one.name], slot = _word(function, address, slot), slot + 1
        else:
            values[one.name], slot = _read(function, address, nested, slot)
    return kind(**values), slot


def _word(function: FunctionBuilder, address: SSAValue, slot: int) -> SSAValue:
    numbers = function.module.numbers
    if numbers is None:
        return function.word_if_used(address, slot)
    return function.integer(numbers[slot])


@cache
def _nested(kind: type) -> Mapping[str, Any]:
    """Returns the nested dataclass of each field, or `None` for a plain field."""
    return {name: get_origin(type_) for name, type_ in get_type_hints(kind).items()}
