"""The errors a user can meet. Every one says what was found, what is accepted and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class ByocError(Exception):
    """Base of all errors that `byoc_mlir` raises on purpose."""


class InvalidModelError(ByocError):
    """The file or the graph is not a valid ONNX model (truncated, cyclic, ill-typed, ...)."""


class UnsafeModelError(InvalidModelError):
    """The model reaches for something outside of its own folder, or lies about its sizes."""


@dataclass(frozen=True)
class NodeProblem:
    """One ONNX node that cannot be imported, and why."""

    node: str
    op_type: str
    domain: str
    reason: str

    def __str__(self) -> str:
        op = f"{self.domain}.{self.op_type}" if self.domain else self.op_type
        return f"{self.node} ({op}): {self.reason}"


class UnsupportedModelError(ByocError):
    """The model is valid, but some nodes cannot be compiled; `problems` lists all of them."""

    def __init__(self, problems: Sequence[NodeProblem]):
        self.problems = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{len(self.problems)} node(s) of the model are not supported:\n{lines}")


class InputValuesNeededError(UnsupportedModelError):
    """Shapes in the model depend on the values of some inputs: it compiles for given values only.

    `inputs` names them.
    """

    def __init__(self, problems: Sequence[NodeProblem], inputs: Sequence[str]):
        super().__init__(problems)
        self.inputs = tuple(inputs)


class InvalidInputError(ByocError):
    """An input given to `Executable.run` has a wrong name, dtype or shape, or is missing."""


class MissingWeightsError(ByocError):
    """A constant's bytes are not in the store that came with the module."""


class BackendError(ByocError):
    """A backend is unknown, ill-declared, or not usable on this machine."""


class FallbackForbiddenError(ByocError):
    """`fallback="forbid"` was asked for and some nodes stayed on the host; all are listed."""


class CompilationError(ByocError):
    """A region or the host part could not be compiled; the message names the op and the stage."""


class ExecutionError(ByocError):
    """A native call failed at load or run time; the message names the region and the call."""


class ToolchainError(ByocError):
    """A C compiler or a tool beside it is missing, or refused its input."""


class ArtifactError(ByocError):
    """A compiled model cannot be written to, or used from, a file."""


class ExportError(ArtifactError):
    """The model cannot be exported in this form; the message says which part, and what can be."""


class InvalidArtifactError(ArtifactError):
    """The file is no compiled model, or truncated, altered, or of another format version."""


class IncompatibleArtifactError(ArtifactError):
    """The file is good, but this machine lacks something: processor features, a library."""


class UnsafeCacheError(ByocError):
    """Others may write to the folder of the cache, and so choose what runs in this process."""
