"""Measurement of the latencies of primitives."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import numpy as np

from byoc_mlir.backends.dnnl.library.calls import MemoryDescriptor
from byoc_mlir.backends.dnnl.library.objects import descriptor as described
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.onednn.constants import Arg
from byoc_mlir.onednn.engine import engine
from byoc_mlir.onednn.primitives import BoundPrimitive, Primitive, PrimitiveDescriptor
from byoc_mlir.runtime.system.signals import signals_held
from byoc_mlir.runtime.system.threads import thread_clock
from byoc_mlir.tensors import Array, aligned_empty

_ALIGNMENT = 64

_ENOUGH_SECONDS, _MOST_RUNS = 0.004, 5


def shortest_run(execute: Callable[[], None], clock: Callable[[], float]) -> float:
    """Returns the seconds of the shortest run, after one warm-up run."""
    execute()
    best, spent = math.inf, 0.0
    for _ in range(_MOST_RUNS):
        start = clock()
        execute()
        took = clock() - start
        best, spent = min(best, took), spent + took
        if spent >= _ENOUGH_SECONDS:
            break
    return best


_GOLDEN_RATIO = (1 + math.sqrt(5)) / 2
"""Multiples of it are evenly distributed modulo 1: noise without the import of `numpy.random`."""

_NOISE_ELEMENTS = 1 << 14


def _noise() -> Array:
    """Returns random values between -1 and 1, both as `f32` and as `bf16` in the same bytes."""
    spread = np.arange(1, 1 + _NOISE_ELEMENTS) * _GOLDEN_RATIO % 1.0
    bits = (2 * spread - 1).astype(np.float32).view(np.uint32)
    return (bits & 0xFFFF0000 | bits >> 16).view(np.float32)


class Bench:
    """Measures primitives on random data: some code is faster on zeros, or on values of one
    sign.
    """

    def __init__(self) -> None:
        self._noise = _noise()
        self._memory = np.empty((0, _NOISE_ELEMENTS), np.float32)
        self._measuring = ForkSafeLock()

    def milliseconds(
        self,
        descriptor: PrimitiveDescriptor,
        arguments: tuple[int, ...],
        parameters: Mapping[int, MemoryDescriptor] | None = None,
    ) -> float:
        """Returns the milliseconds of the shortest of a few executions with these arguments.

        Args:
            parameters: descriptors of arguments that the primitive descriptor does not describe.

        Raises:
            ExecutionError: the library cannot create or run the primitive.
        """
        with self._measuring:  # one memory is there for all, and a neighbour would be measured
            objects = {one: described(other) for one, other in (parameters or {}).items()}
            sizes = {
                one: (objects.get(one) or descriptor.descriptor(one)).byte_size
                for one in (*arguments, Arg.SCRATCHPAD)
            }
            bound = BoundPrimitive(Primitive(descriptor), self._arrays(sizes), objects)
            with signals_held():  # some code of the library has its stack elsewhere
                return 1e3 * shortest_run(bound.run, _clock())

    def release_memory(self) -> None:
        """Frees the memory for operands, which is as large as the largest weights measured."""
        with self._measuring:
            self._memory = self._memory[:0].copy()

    def _arrays(self, sizes: Mapping[int, int]) -> dict[int, Array]:
        """Returns arrays of the given sizes in the memory for operands, each aligned to a cache
        line.
        """
        spaces = {one: -(-size // _ALIGNMENT) * _ALIGNMENT for one, size in sizes.items()}
        needed = -(-sum(spaces.values()) // self._noise.nbytes)
        if len(self._memory) < needed:
            self._memory = aligned_empty((needed, _NOISE_ELEMENTS), np.float32)
        self._memory[:needed] = self._noise
        flat, start = self._memory.reshape(-1).view(np.uint8), 0
        arrays: dict[int, Array] = {}
        for one, space in spaces.items():
            arrays[one] = flat[start : start + space]
            start += space
        return arrays


bench = Bench()
"""Bench that all regions of a process share."""


def _clock() -> Callable[[], float]:
    """Returns the clock for measurements.

    With one thread, it is the thread's CPU time, which does not count waiting for a core.
    """
    return thread_clock() if engine().threads == 1 else time.perf_counter
