"""Calls of a program with dynamic shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from byoc_mlir.boundary import boundary
from byoc_mlir.dims import Size, evaluated
from byoc_mlir.limits import Limits, check_tensor, limited
from byoc_mlir.locks import cached_property
from byoc_mlir.runtime.program import Program, Step
from byoc_mlir.runtime.system.memory import address_of


class Call:
    """Arena size, output shapes and other requirements of a call, for inputs of given sizes.

    Args:
        program: program that takes sizes.
        outputs: shapes of the outputs, parsed from the program's text form.
        sizes: sizes by symbol.
        limits: limits of the call's memory.

    Raises:
        LimitExceededError: the call exceeds a limit.
    """

    def __init__(
        self,
        program: Program,
        outputs: Sequence[Sequence[Size]],
        sizes: Mapping[str, int],
        limits: Limits,
    ):
        symbolic = program.sizes
        assert symbolic is not None
        self._steps, self._work, self._sizes = program.steps, symbolic.work, sizes
        self._values = np.array([sizes[info.name] for info in symbolic.symbols], np.int64)
        self.sizes_address = address_of(self._values)
        self.outputs = [
            (tuple(map(self._number, shape)), spec.dtype)
            for shape, spec in zip(outputs, program.outputs, strict=True)
        ]
        self.arena_bytes = self._number(symbolic.arena)
        output_bytes = sum(math.prod(shape) * dtype.itemsize for shape, dtype in self.outputs)
        for tensor in symbolic.tensors:
            shape = [self._number(size) for size in tensor.sizes]
            with boundary("run", tensor.node), limited(limits):
                check_tensor(shape, tensor.item_bytes, tensor.what)
        limits.check("arena_bytes", self.arena_bytes, "bytes of the arena")
        limits.check("output_bytes", output_bytes, "bytes of the model's outputs")

    @cached_property
    def steps(self) -> Sequence[Step]:
        """Returns the program's timed steps, with their work for these sizes."""
        return [
            replace(step, multiplications=self._number(products), bytes=self._number(moved))
            for step, (products, moved) in zip(self._steps, self._work, strict=True)
        ]

    def _number(self, size: Size) -> int:
        return evaluated(size, self._sizes)
