"""Addresses of a region's values in native code, and buffers of those between its nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.abi import OPEN
from byoc_mlir.backends.region import nodes_of, outputs_of
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.kernels.arena import BufferRequest, plan_offsets
from byoc_mlir.kernels.builder import POINTER, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder

WORKSPACE_SLOT = 0
"""Context slot of the workspace's address."""


def inner_offsets(region: FuncOp) -> tuple[Mapping[SSAValue, int], int]:
    """Returns the workspace offsets of the values between nodes, and the workspace's size.

    Each node has one result.
    """
    nodes, outputs = list(nodes_of(region)), outputs_of(region)
    inner = [(number, op.results[0]) for number, op in enumerate(nodes)]
    inner = [(number, value) for number, value in inner if value not in outputs]
    requests = [
        BufferRequest(byte_count(value), number, _last_use(value, nodes, number))
        for number, value in inner
    ]
    offsets, size = plan_offsets(requests)
    return {value: offset for (_, value), offset in zip(inner, offsets, strict=True)}, size


def define_open(
    module: ModuleBuilder,
    symbol: str,
    prepare: Callable[[FunctionBuilder, SSAValue], None] | None = None,
) -> None:
    """Defines `R_open(state, context, workspace)`, which notes the workspace.

    Args:
        module: the region's module.
        symbol: the region's symbol.
        prepare: function that adds code for other slots of the context.
    """
    function = module.function(OPEN.hook(symbol), (POINTER,) * 3)
    _, context, workspace = function.parameters
    function.store(workspace, function.slot(context, WORKSPACE_SLOT))
    if prepare is not None:
        prepare(function, context)
    function.finish(function.integer(0, i32))


def value_addresses(
    function: FunctionBuilder,
    region: FuncOp,
    tensors: Sequence[SSAValue],
    workspace: SSAValue,
    offsets: Mapping[SSAValue, int],
    constants: Sequence[Weight] = (),
) -> dict[SSAValue | Weight, SSAValue]:
    """Returns the addresses of constants, inputs and outputs, which are `tensors` in this order,
    and of the values between nodes.
    """
    named: Sequence[SSAValue | Weight] = (*constants, *region.args, *outputs_of(region))
    found = dict(zip(named, tensors, strict=True))
    for value, offset in offsets.items():
        found[value] = function.offset(workspace, function.integer(offset))
    return found


def byte_count(value: SSAValue) -> int:
    """Returns the bytes of a tensor."""
    element = numpy_dtype(tensor_type(value).element_type)
    return math.prod(shape_of(value)) * element.itemsize


def _last_use(value: SSAValue, nodes: Sequence[Operation], first: int) -> int:
    users = {use.operation for use in value.uses}
    return max((n for n, op in enumerate(nodes) if op in users), default=first)
