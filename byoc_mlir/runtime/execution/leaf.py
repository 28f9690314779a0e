"""Leaf of a plan that is one program, for inputs of fixed shapes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from byoc_mlir.limits import Limits
from byoc_mlir.runtime.arguments import Arguments, Inputs, Shape
from byoc_mlir.runtime.destinations import destinations
from byoc_mlir.runtime.execution.node import LoadedNode, Named, Parts
from byoc_mlir.runtime.instance import instance_of
from byoc_mlir.runtime.plan import Leaf, leaf_of
from byoc_mlir.runtime.program import Program
from byoc_mlir.runtime.system.forks import on_live_threads


class LoadedLeaf(LoadedNode):
    """Leaf with its only program, loaded.

    Args:
        limits: limits of a call's memory.
        load: false to load the program at its first run.
    """

    def __init__(self, program: Program, limits: Limits, *, load: bool = True):
        self._instance = on_live_threads(partial(instance_of, program, limits, load=load))()
        self._arguments = Arguments(program.inputs)
        self.inputs, self.outputs = program.inputs, tuple(self._instance.output_names)

    @property
    def is_complete(self) -> bool:
        return True

    def run(self, inputs: Inputs, parts: Parts = None) -> dict[str, Any]:
        arrays = self._arguments.as_they_are(inputs) or self._arguments.checked(inputs)
        values = self._instance.run(arrays, None, None, parts)  # all arguments: it is called faster
        return dict(zip(self.outputs, values))  # noqa: B905, it takes as long

    def run_into(self, inputs: Inputs, out: Mapping[str, Any]) -> dict[str, Any]:
        instance = self._instance
        arrays = self._arguments.as_they_are(inputs) or self._arguments.checked(inputs)
        outputs = destinations(instance, instance.outputs, arrays, out)
        return dict(zip(self.outputs, instance.run(arrays, outputs), strict=True))

    def to_device(self, inputs: Named) -> dict[str, Any]:
        return self._instance.placed(self._arguments.some(inputs))

    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        self._arguments.shapes(shapes)

    def known(self) -> Leaf:
        return leaf_of(self._instance.program)

    def exported(self, shapes: Mapping[str, Shape] | None) -> Leaf:
        if shapes is not None:
            self._arguments.shapes(shapes)  # the only shapes there are
        return self.known()

    def close(self) -> None:
        self._instance.close()
