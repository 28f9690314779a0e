"""Arguments of calls as words of a table: encoding, and code that reads them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.library import calls
from byoc_mlir.kernels.builder import FunctionBuilder

ENGINE_SLOT = 0
"""State slot of the engine."""

MAX_DIMS = 12
"""Maximum number of dimensions in `dnnl_dims_t`."""


@dataclass(frozen=True)
class Slots:
    """State slots of descriptors and attributes, for the arguments of calls."""

    descriptors: dict[calls.MemoryDescriptor, int]
    runs: dict[calls.Descriptors, int]
    attributes: dict[calls.Attributes, int]


@dataclass(frozen=True)
class Cursor:
    """Position in a table that code reads, as the number of a word."""

    function: FunctionBuilder
    state: SSAValue
    table: SSAValue
    word: int


Read: TypeAlias = Callable[[Cursor], SSAValue]
"""Function that generates code that reads an argument."""


def in_table(argument: calls.Argument, slots: Slots) -> tuple[Sequence[int], Read]:
    """Returns the words that stand for an argument, and a generator of code that reads them.

    The code is the same for all arguments of a type, including `None`, a null pointer with slot 0.
    So all calls of one kind share their code.
    """
    if argument is calls.NULL:
        return [], lambda at: at.function.null()
    if isinstance(argument, calls.Special):
        return [], lambda at: at.function.pointer(at.state, ENGINE_SLOT)
    if argument is None:
        return [0], _held
    if isinstance(argument, calls.MemoryDescriptor):
        return [slots.descriptors[argument]], _held
    if isinstance(argument, calls.Attributes):
        return [slots.attributes[argument]], _held
    if isinstance(argument, calls.Descriptors):
        return [slots.runs[argument]], lambda at: at.function.slot(
            at.state, at.function.word(at.table, at.word)
        )
    if isinstance(argument, tuple):
        return padded_dims(argument), lambda at: at.function.slot(at.table, at.word)
    if isinstance(argument, calls.Size):
        return [argument.value], lambda at: at.function.word(at.table, at.word)
    if isinstance(argument, float):
        bits = int.from_bytes(struct.pack("<f", argument), "little")
        return [bits], lambda at: at.function.word(at.table, at.word, f32)
    return [argument], lambda at: at.function.word(at.table, at.word, i32)


def _held(at: Cursor) -> SSAValue:
    """Returns the pointer in the state slot that the word names; null for slot 0."""
    function = at.function
    number = function.word(at.table, at.word)
    absent = function.compare("eq", number, function.integer(0))
    held = function.pointer(at.state, number)
    return function.select(absent, function.null(), held)


def padded_dims(dims: Sequence[int]) -> list[int]:
    """Returns the words of a `dnnl_dims_t`."""
    return [*dims, *[0] * (MAX_DIMS - len(dims))]
