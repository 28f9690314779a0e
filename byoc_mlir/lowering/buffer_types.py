"""Types of the buffers that tensors become, in the memory spaces of the tensors."""

from __future__ import annotations

from xdsl.dialects.builtin import FunctionType, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.dialects import host
from byoc_mlir.dialects.device_ops import argument_spaces, in_space, region_space, result_spaces


def buffer_signature(function: FuncOp) -> FunctionType:
    """Returns the type of a function on buffers; results become trailing arguments."""
    type_, space = function.function_type, region_space(function)
    spaces = [*argument_spaces(function), *result_spaces(function)]
    if space != HOST_SPACE:
        spaces = [space] * len(spaces)
    buffers = map(buffer_in, (*type_.inputs, *type_.outputs), spaces)
    return FunctionType.from_lists(list(buffers), [])


def buffer_in(type_: Attribute, space: str) -> Attribute:
    """Returns the type of a tensor's buffer in a memory space; returns other types unchanged."""
    buffer = host.buffer_type(type_)
    return in_space(buffer, space) if isinstance(buffer, MemRefType) else buffer
