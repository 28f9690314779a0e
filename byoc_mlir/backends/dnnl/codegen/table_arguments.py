"""The arguments of calls, as words of a table: what is written there, and what reads it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.library.calls import (
    NULL,
    Argument,
    Attributes,
    Descriptors,
    MemoryDescriptor,
    Size,
    Special,
)
from byoc_mlir.kernels.builder import FunctionBuilder

ENGINE_SLOT = 0
"""The state slot of the engine."""

MAX_DIMS = 12
"""The dimensions that `dnnl_dims_t` has room for."""


@dataclass(frozen=True)
class Slots:
    """State slots by what is in them, for the arguments of calls."""

    descriptors: dict[MemoryDescriptor, int]
    runs: dict[Descriptors, int]
    attributes: dict[Attributes, int]


@dataclass(frozen=True)
class Cursor:
    """A place in a table that code reads: its word number `word`."""

    function: FunctionBuilder
    state: SSAValue
    table: SSAValue
    word: int


Read: TypeAlias = Callable[[Cursor], SSAValue]
"""Writes code that reads an argument."""


def in_table(argument: Argument, slots: Slots) -> tuple[Sequence[int], Read]:
    """The words that stand for an argument, and what reads them.

    What reads them is the same for all arguments of a type, and for `None` that of what is absent,
    whose slot is 0: calls of one kind share its code.
    """
    if argument is NULL:
        return [], lambda at: at.function.null()
    if isinstance(argument, Special):
        return [], lambda at: at.function.pointer(at.state, ENGINE_SLOT)
    if argument is None:
        return [0], _held
    if isinstance(argument, MemoryDescriptor):
        return [slots.descriptors[argument]], _held
    if isinstance(argument, Attributes):
        return [slots.attributes[argument]], _held
    if isinstance(argument, Descriptors):
        return [slots.runs[argument]], lambda at: at.function.slot(
            at.state, at.function.word(at.table, at.word)
        )
    if isinstance(argument, tuple):
        return padded_dims(argument), lambda at: at.function.slot(at.table, at.word)
    if isinstance(argument, Size):
        return [argument.value], lambda at: at.function.word(at.table, at.word)
    if isinstance(argument, float):
        bits = int.from_bytes(struct.pack("<f", argument), "little")
        return [bits], lambda at: at.function.word(at.table, at.word, f32)
    return [argument], lambda at: at.function.word(at.table, at.word, i32)


def _held(at: Cursor) -> SSAValue:
    """The pointer in the state slot that the word names; null where it names slot 0."""
    function = at.function
    number = function.word(at.table, at.word)
    absent = function.compare("eq", number, function.integer(0))
    held = function.pointer(at.state, number)
    return function.select(absent, function.null(), held)


def padded_dims(dims: Sequence[int]) -> list[int]:
    """The words of a `dnnl_dims_t`."""
    return [*dims, *[0] * (MAX_DIMS - len(dims))]
