"""The memory that functions of our own are given, as oneDNN's primitives are."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import FunctionBuilder

_PAIR_SLOTS = 2
"""An argument is its number and a memory object."""


def read_addresses(
    function: FunctionBuilder, arguments: SSAValue, data: SSAValue, slots: Iterable[int]
) -> None:
    """Writes the address of each argument's memory to a slot of the data, in order."""
    for number, slot in enumerate(slots):
        memory = function.pointer(arguments, _PAIR_SLOTS * number + 1)
        handle = function.slot(data, slot)
        function.check(function.call("dnnl_memory_get_data_handle", memory, handle))
