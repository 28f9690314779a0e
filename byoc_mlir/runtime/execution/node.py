"""A node of a plan that is loaded: it runs, and has its parts compiled when they are needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from byoc_mlir.errors import ExportError, ShapesNeededError
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.plan import Node
from byoc_mlir.runtime.profiled import TimedPart
from byoc_mlir.tensors import Array, TensorInfo

Named: TypeAlias = Mapping[str, Array]
Parts: TypeAlias = list[TimedPart] | None
"""Gets the time of each program that runs; `None` where nothing is timed."""
Step: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""A run that is repeated: arrays for the inputs that change, to the outputs."""


class LoadedNode(ABC):
    """A node with the native code that is loaded of it. Any number of threads may run it."""

    def __init__(self, inputs: tuple[TensorInfo, ...], outputs: tuple[str, ...]):
        self.inputs = inputs
        self.outputs = outputs

    @property
    def is_complete(self) -> bool:
        """True if it is one program, and needs no others."""
        return False

    @abstractmethod
    def run(self, inputs: Inputs, parts: Parts = None) -> dict[str, Any]:
        """Returns the outputs by name. Errors are those of `Executable.run`."""

    def steps(self, inputs: Named, changing: Sequence[str]) -> Step:
        """Returns a run of which all but some inputs stay the same.

        Args:
            inputs: those of the first run.
            changing: the inputs that are others in each run. Theirs are contiguous arrays of the
                types of the first ones, and fit the node.
        """
        given = dict(inputs)

        def step(arrays: Sequence[Array]) -> Sequence[Array]:
            given.update(zip(changing, arrays, strict=True))
            return list(self.run(given).values())

        return step

    @abstractmethod
    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        """Compiles what inputs of these shapes need, as far as that is known."""

    def settled(self) -> LoadedNode:
        """Returns the compiled node, waited for; only a tier is not that itself."""
        return self

    def wait(self) -> None:
        """Waits for what is compiled beside the calls."""

    @abstractmethod
    def known(self) -> Node:
        """Returns the node with all that is compiled of it now."""

    @abstractmethod
    def exported(self, shapes: Mapping[str, Shape] | None) -> Node:
        """Returns the node to be written to a file: for these shapes, or for all.

        Raises:
            ExportError: no programs do for the model.
        """

    @abstractmethod
    def close(self) -> None:
        """Frees all native memory; nothing may be running."""


def exported_part(node: LoadedNode, what: str) -> Node:
    """Returns a part of a model as it is written to a file, for all shapes that it may get.

    Args:
        what: the part, for errors.

    Raises:
        ExportError: there is no program for all.
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
