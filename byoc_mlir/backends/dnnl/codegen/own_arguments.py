"""Arguments of built-in kernels, in the form of oneDNN's execution arguments."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import FunctionBuilder

_PAIR_SLOTS = 2
"""Slots of an argument: its number and a memory object."""


def read_addresses(
    function: FunctionBuilder, arguments: SSAValue, data: SSAValue, slots: Iterable[int]
) -> None:
    """Copies the address of each argument's memory to a slot of `data`, in order."""
    for number, slot in enumerate(slots):
        memory = function.pointer(arguments, _PAIR_SLOTS * number + 1)
        handle = function.slot(data, slot)
        function.check(function.call("dnnl_memory_get_data_handle", memory, handle))
