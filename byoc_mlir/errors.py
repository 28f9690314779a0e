"""The errors that users can meet. Each message says what was found, what is accepted and what to
do.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from byoc_mlir.names import printable, printable_lines


class ByocError(Exception):
    """Base of all errors that leave `byoc_mlir`.

    `str()` gives the message without control characters, because models choose the names in it.

    Attributes:
        stage: stage of the work, `import`, `lower`, `run`; `None` if no stage had begun.
        node: ONNX node of the work, if it is known.
    """

    stage: str | None = None
    node: str | None = None

    def __str__(self) -> str:
        return printable_lines(self._message())

    def _message(self) -> str:
        """Returns the message with unchanged names."""
        return super().__str__()

    def locate(self, stage: str, node: str | None) -> None:
        """Records the stage and the node; values recorded nearer to the cause stay."""
        self.stage = self.stage or stage
        self.node = self.node or node


class InvalidModelError(ByocError):
    """The file or the graph is not a valid ONNX model (truncated, cyclic, ill-typed, ...)."""


class UnsafeModelError(InvalidModelError):
    """The model refers to something outside of its own folder, or declares false sizes."""


@dataclass(frozen=True)
class NodeProblem:
    """One ONNX node that cannot be imported, and why."""

    node: str
    op_type: str
    domain: str
    reason: str

    def __str__(self) -> str:
        op = f"{self.domain}.{self.op_type}" if self.domain else self.op_type
        return f"{printable(f'{self.node} ({op})')}: {self.reason}"


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


class UnsupportedTypeError(ByocError):
    """Tensors of `relay` do not support the named element type."""


class InvalidInputError(ByocError):
    """An input given to `Executable.run` has a wrong name, dtype, shape or value, or is missing."""


class MissingWeightsError(ByocError):
    """A constant's bytes are not in the store that came with the module."""


class BackendError(ByocError):
    """A backend is unknown, ill-declared, or not usable on this machine."""


class MissingExtraError(ByocError):
    """An optional part is not installed; the message says how to install it."""


class FallbackForbiddenError(ByocError):
    """Some nodes stayed on the host despite `fallback="forbid"`; all are listed."""


class CompilationError(ByocError):
    """A region or the host part could not be compiled; the message names the op and the stage."""


class InternalError(CompilationError):
    """A defect of `byoc_mlir`: an unexpected exception reached a boundary.

    `__cause__` is the original exception.
    """

    def __init__(self, cause: BaseException, stage: str, node: str | None):
        self.locate(stage, node)
        at = f", node '{node}'" if node else ""
        what = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
        super().__init__(
            f"this is a defect of byoc_mlir: stage {stage}{at}: {what}{_raised_at(cause)}; please"
            " report it with the model, or with what is left when all is cut that it does not need"
        )


def _raised_at(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


class LimitExceededError(ByocError):
    """Something is larger than its limit; the message says how to raise the limit.

    Attributes:
        limit: the field of `byoc_mlir.Limits`.
        found: its actual or expected size.
        accepted: the limit.
    """

    def __init__(self, limit: str, what: str, found: float, accepted: float):
        super().__init__(limit, what, found, accepted)
        self.limit = limit
        self.found = found
        self.accepted = accepted
        self._what = what

    def _message(self) -> str:
        at = f"node '{self.node}': " if self.node else ""
        return (
            f"{at}{self._what}: {self.found}, the limit is {self.accepted}; to raise it, pass"
            f" limits=byoc_mlir.Limits({self.limit}=...) to compile"
        )


class OutOfMemoryError(ByocError):
    """A memory allocation failed; the message gives the number of bytes if it is known."""


class SystemRefusedError(ByocError):
    """The operating system refused something that is no fault of the model, such as a write to a
    full disk.
    """


class ExecutionError(ByocError):
    """A native call failed at load or run time; the message names the region and the call."""


class DeviceError(ExecutionError):
    """Failure of a device: of an allocation, a copy, a launch, or of the device itself."""


class DeviceMemoryError(DeviceError):
    """A device has too little memory for a program's constants, or for a context."""

    def __init__(self, text: str, device: str = ""):
        super().__init__(text)
        self.device = device


class ToolchainError(ByocError):
    """A C compiler or a related tool is missing, or refused its input."""


class ArtifactError(ByocError):
    """A compiled model cannot be written to, or used from, a file."""


class ExportError(ArtifactError):
    """The model cannot be exported in this form; the message names the part, and possible forms."""


class ShapesNeededError(ExportError):
    """No program serves all shapes of the model, so the export needs concrete shapes."""


class InvalidArtifactError(ArtifactError):
    """The file is no compiled model, or truncated, altered, or of another format version."""


class IncompatibleArtifactError(ArtifactError):
    """The file is good, but this machine lacks something: processor features, a library."""


class UnsafeCacheError(ByocError):
    """Others may write to the folder of the cache, and so choose what runs in this process."""


class UndecidedSizeError(ByocError):
    """A symbolic size must be a number here, or a query on it has no answer."""
