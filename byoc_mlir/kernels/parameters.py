"""What a kernel's code is told when it runs: named fields, written to memory as words.

A dataclass over a type variable describes them once. With sizes in it, `words` gives what is
written; `read` gives the same dataclass with the values that a function has loaded.
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
    """All fields in order, those of dataclasses in them in their place."""
    return tuple(_words(parameters))


def _words(parameters: Any) -> Iterator[Size]:
    for one in fields(parameters):
        value = getattr(parameters, one.name)
        if isinstance(value, int | Dim):
            yield value
        else:
            yield from _words(value)


def read(function: FunctionBuilder, address: SSAValue, description: type[T]) -> T:
    """Loads all fields; those that the function does not use are gone when it is finished. Where
    the module is for known numbers, they are constants.

    Args:
        function: where they are loaded.
        address: that of the words.
        description: the dataclass, over `SSAValue`.
    """
    return cast(T, _read(function, address, description, 0)[0])


def _read(
    function: FunctionBuilder, address: SSAValue, description: Any, slot: int
) -> tuple[Any, int]:
    """An instance whose words begin at a slot, and the slot behind it."""
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
    """By field: the dataclass that it has, if it has one."""
    return {name: get_origin(type_) for name, type_ in get_type_hints(kind).items()}
