"""Addresses of a region's values in native code, and buffers of those between its nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.region import nodes_of, outputs_of
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.kernels.arena import BufferRequest, plan_offsets
from byoc_mlir.kernels.builder import FunctionBuilder


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


def inner_addresses(
    function: FunctionBuilder, workspace: SSAValue, offsets: Mapping[SSAValue, int]
) -> dict[SSAValue | Weight, SSAValue]:
    """Returns the addresses of the values between nodes."""
    return {
        value: function.offset(workspace, function.integer(offset))
        for value, offset in offsets.items()
    }


def named_addresses(
    region: FuncOp, constants: Sequence[Weight], tensors: Sequence[SSAValue]
) -> dict[SSAValue | Weight, SSAValue]:
    """Returns the addresses of constants, inputs and outputs, given in this order."""
    named: Sequence[SSAValue | Weight] = (*constants, *region.args, *outputs_of(region))
    return dict(zip(named, tensors, strict=True))


def byte_count(value: SSAValue) -> int:
    """Returns the bytes of a tensor."""
    element = numpy_dtype(tensor_type(value).element_type)
    return math.prod(shape_of(value)) * element.itemsize


def _last_use(value: SSAValue, nodes: Sequence[Operation], first: int) -> int:
    users = {use.operation for use in value.uses}
    return max((n for n, op in enumerate(nodes) if op in users), default=first)
