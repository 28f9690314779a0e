"""Memory that a call of a program needs: its context, and arrays for its outputs."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from byoc_mlir.abi import ARENA_ALIGNMENT
from byoc_mlir.errors import OutOfMemoryError
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.system.memory import c_array

_empty = np.empty  # found faster than an attribute


class Context:
    """Memory that each call needs: context slots, the arena, and a C array of pointers.

    `pointers` has the inputs' pointers, then the outputs'. If the program takes sizes, the pointer
    to the sizes comes first.
    """

    def __init__(self, program: Program, state_address: int):
        self.slots = np.zeros(max(program.context_slots, 1), np.int64)
        self.allocate(program.arena_bytes)
        self.slots_address = int(self.slots.ctypes.data)
        taken = len(program.inputs) + (program.sizes is not None)
        self.pointers = c_array(ctypes.c_void_p, taken + len(program.outputs) or 1)()
        inputs = ctypes.addressof(self.pointers)
        outputs = inputs + taken * ctypes.sizeof(ctypes.c_void_p)
        self.arguments = tuple(
            ctypes.c_void_p(address)  # converted once, not in every call
            for address in (state_address, self.slots_address, self.arena_address, inputs, outputs)
        )

    def allocate(self, size: int) -> None:
        """Allocates the arena with `size` bytes.

        Raises:
            OutOfMemoryError: there is not enough memory.
        """
        try:
            self._arena = np.empty(size + ARENA_ALIGNMENT, np.uint8)
        except (MemoryError, ValueError) as error:
            raise OutOfMemoryError(_no_memory("arena", size)) from error
        start = int(self._arena.ctypes.data)
        self.arena_address = start + -start % ARENA_ALIGNMENT
        self.arena_bytes = size

    def grow(self, size: int) -> None:
        """Replaces the arena by one with `size` bytes."""
        self.allocate(size)
        state, slots, _, inputs, outputs = self.arguments
        self.arguments = (state, slots, ctypes.c_void_p(self.arena_address), inputs, outputs)


def new_outputs(outputs: Sequence[tuple[Shape, np.dtype[Any]]]) -> list[Array]:
    """Returns uninitialised arrays of these shapes and types.

    Raises:
        OutOfMemoryError: there is not enough memory for them.
    """
    try:
        return [_empty(shape, dtype) for shape, dtype in outputs]
    except (MemoryError, ValueError) as error:  # ValueError: more bytes than can be addressed
        size = sum(math.prod(shape) * dtype.itemsize for shape, dtype in outputs)
        raise OutOfMemoryError(_no_memory("outputs", size)) from error


def _no_memory(what: str, size: int) -> str:
    """Returns the error message for memory that a run could not allocate."""
    return f"run: there is no memory for the {what} of the model, {size:,} bytes"
