"""Loaded node of a plan: it runs, and compiles its parts when they are needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from byoc_mlir.errors import ExportError, ShapesNeededError
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.destinations import check_names, copied_into
from byoc_mlir.runtime.plan import Node
from byoc_mlir.runtime.profiled import TimedPart
from byoc_mlir.tensors import Array, TensorInfo

Named: TypeAlias = Mapping[str, Array]
Parts: TypeAlias = list[TimedPart] | None
"""List for the times of each program that runs; None if nothing is timed."""
Step: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""Function that runs a node again: computes the outputs from arrays for the inputs that change."""


class LoadedNode(ABC):
    """Node of a plan with its native code. Any number of threads may run it."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """True if the node is one program, and needs no further ones."""
        return False

    @abstractmethod
    def run(self, inputs: Inputs, parts: Parts = None) -> dict[str, Any]:
        """Returns the outputs by name. Errors are those of `Executable.run`."""

    def run_into(self, inputs: Inputs, out: Mapping[str, Any]) -> dict[str, Any]:
        """Runs the node, and writes the outputs that `out` names into its arrays.

        Raises:
            InvalidInputError: an array does not fit the output.
        """
        check_names(out, self.outputs)
        return copied_into(self.run(inputs), out)

    def to_device(self, inputs: Named) -> dict[str, Any]:
        """Copies inputs to the memory in which the node takes them; errors are those of
        `Executable.to_device`.
        """
        return dict(inputs)

    def steps(self, inputs: Named, changing: Sequence[str]) -> Step:
        """Returns a function that runs the node repeatedly, if only some inputs change between
        runs.

        Args:
            inputs: inputs of the first run.
            changing: inputs that change in each run. Their arrays are contiguous, have the types of
                the first run's inputs, and fit the node.
        """
        given = dict(inputs)

        def step(arrays: Sequence[Array]) -> Sequence[Array]:
            given.update(zip(changing, arrays, strict=True))
            return list(self.run(given).values())

        return step

    @abstractmethod
    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        """Compiles the programs for inputs of these shapes, as far as these determine the
        programs.
        """

    def settled(self) -> LoadedNode:
        """Returns the compiled node: the node itself, or for a tier, the compiled model, after
        waiting for it.
        """
        return self

    def wait(self) -> None:
        """Waits for compilations in the background."""

    @abstractmethod
    def known(self) -> Node:
        """Returns the node of the plan with all programs that are compiled so far."""

    @abstractmethod
    def exported(self, shapes: Mapping[str, Shape] | None) -> Node:
        """Returns the node of the plan to write to a file, for the given shapes, or for all shapes.

        Raises:
            ExportError: no set of programs covers all shapes.
        """

    @abstractmethod
    def close(self) -> None:
        """Frees all native memory; no run may be active."""


def exported_part(node: LoadedNode, what: str) -> Node:
    """Returns the node of the plan to write to a file for a part of a model, for all shapes that
    the part may get.

    Args:
        what: name of the part, for errors.

    Raises:
        ExportError: no program covers all shapes.
    """
    try:
        return node.exported(None)
    except ShapesNeededError as error:
        raise ExportError(
            f"{what} is compiled for each set of sizes or values that reaches it, so that the"
            " model cannot be exported; compile it where it runs"
        ) from error
    except ExportError as error:
        raise ExportError(f"{what} cannot be exported: {error}") from error
