"""What running a primitive costs, measured with the library itself."""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl import layouts
from byoc_mlir.backends.dnnl.api import Api, PrimitiveDescriptor
from byoc_mlir.backends.dnnl.calls import MemoryDescriptor, PrimitiveCall
from byoc_mlir.backends.dnnl.enums import Arg
from byoc_mlir.backends.dnnl.primitives import primitive, reorder
from byoc_mlir.dialects.relay.base import shape_of

IMPOSSIBLE = math.inf

_REFERENCE_PENALTY = 50.0
"""A reference implementation is not worth measuring: it counts as this many milliseconds."""

_measured: dict[tuple[PrimitiveCall, int], float] = {}


class Costs:
    """Milliseconds of ops and of reorders; measurements are kept for the life of the process.

    Args:
        threads: the OpenMP threads that are set while measuring.
    """

    def __init__(self, api: Api, threads: int):
        self._api = api
        self._threads = threads

    def op(self, op: Operation, layout: Callable[[SSAValue], str]) -> float:
        """The time of an op with its operands and results in the given layouts."""
        described = primitive(op, layout)
        assert described is not None
        descriptor = self._api.find(described.call)
        if descriptor is None:
            return IMPOSSIBLE
        if descriptor.implementation.startswith("ref"):
            return _REFERENCE_PENALTY
        return self._time(described.call, descriptor, described.arguments)

    def reorder(self, value: SSAValue, old: str, new: str) -> float:
        """The time of bringing a value from one layout to another; 0 where nothing moves."""
        shape = shape_of(value)
        if layouts.same_bytes(shape, old, new):
            return 0.0
        call = reorder(MemoryDescriptor(shape, old), MemoryDescriptor(shape, new))
        descriptor = self._api.find(call)
        if descriptor is None:
            return IMPOSSIBLE
        return self._time(call, descriptor, (Arg.SRC, Arg.DST))

    def _time(
        self, call: PrimitiveCall, descriptor: PrimitiveDescriptor, arguments: tuple[int, ...]
    ) -> float:
        key = (call, self._threads)
        if key not in _measured:
            _measured[key] = self._api.measure(descriptor, arguments)
        return _measured[key]
