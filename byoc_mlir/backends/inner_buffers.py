"""Buffers of the values between the nodes of a region."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.region import nodes_of, outputs_of
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.kernels.arena import BufferRequest, plan_offsets


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


def byte_count(value: SSAValue) -> int:
    """Returns the bytes of a tensor."""
    element = numpy_dtype(tensor_type(value).element_type)
    return math.prod(shape_of(value)) * element.itemsize


def _last_use(value: SSAValue, nodes: Sequence[Operation], first: int) -> int:
    users = {use.operation for use in value.uses}
    return max((n for n, op in enumerate(nodes) if op in users), default=first)
