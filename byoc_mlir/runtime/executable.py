"""Class `Executable`, the result of `byoc_mlir.compile` and `byoc_mlir.load`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from byoc_mlir.boundary import boundary, translated
from byoc_mlir.calibration import measuring
from byoc_mlir.errors import ByocError, ExecutionError, ExportError, InvalidInputError
from byoc_mlir.runtime.arguments import Arguments, Inputs, Shape
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.plan import Node
from byoc_mlir.runtime.profile import Profile
from byoc_mlir.runtime.profiled import TimedPart, TimedRun, profile_of
from byoc_mlir.runtime.program import Program
from byoc_mlir.runtime.report import Report

if TYPE_CHECKING:
    from byoc_mlir.runtime.verification import Asked, Bisection, Verification

FileKind: TypeAlias = Literal["library", "object"]


class Exporter(Protocol):
    """Function that writes a plan to a file: `artifact.write`, which the compiler provides."""

    def __call__(self, kind: FileKind, plan: Node, path: Path, name: str | None, /) -> Path: ...


class Verifier(Protocol):
    """Verifier that compares an executable with an oracle; the compiler provides it."""

    def verify(self, executable: Executable, asked: Asked, /) -> Verification: ...

    def bisect(self, executable: Executable, asked: Asked, /) -> Bisection: ...


class Executable:
    """Compiled model. Several threads may call `run` at once.

    Args:
        node: the plan, loaded.
        exporter: function that writes the plan to a file; None if the plan was loaded from a file.
        remake: function that compiles the model again, in the process that unpickles it; None if
            that is not possible.
    """

    def __init__(
        self,
        node: LoadedNode,
        exporter: Exporter | None = None,
        remake: Callable[[], Executable] | None = None,
    ):
        self.inputs = node.inputs
        self.outputs = node.outputs
        self.node = node
        self._exporter = exporter
        self._remake = remake
        self._verifier: Verifier | None = None
        self._is_closed = False

    def run(self, inputs: Inputs, out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Runs the model.

        Args:
            inputs: arrays by input name, or in the order of `self.inputs`. A sequence is a list of
                arrays; an optional may be `None`.
            out: arrays by output name, into which the run writes these outputs. They are
                C-contiguous, have the output's dtype and shape, and share no memory with an input
                or another output. As an exception, an output of `program.aliases` may be the array
                of its input, which is then overwritten. The other outputs are new arrays.

        Returns:
            The outputs by name, as arrays that the caller owns; sequences and optionals have the
            form of such inputs.

        Raises:
            InvalidInputError: an input is missing or unknown; or an input or an array of `out` has
                a wrong dtype or shape.
            ExecutionError: a native call failed, or the executable is closed.
            OutOfMemoryError: there is no memory for the outputs, or for the arena.
        """
        try:  # a context manager takes a tenth of a small model's time
            return self.node.run(inputs, None) if out is None else self.node.run_into(inputs, out)
        except ByocError as error:
            error.locate("run", None)
            raise
        except Warning:
            raise
        except Exception as error:
            raise translated(error, "run") from error

    def to_device(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Copies inputs to the memory in which the model takes them.

        Args:
            inputs: arrays by name, of some or all inputs.

        Returns:
            `DeviceArray`s for the inputs that are `resident` on a device, other arrays unchanged.

        Raises:
            InvalidInputError: an input is unknown, or has a wrong dtype or shape.
            DeviceError: the device has no memory, or the copy failed.
        """
        with boundary("to_device"):
            return self.node.to_device(inputs)

    def profile(self, inputs: Inputs, runs: int = 10) -> Profile:
        """Measures the time of each step of a run.

        Args:
            inputs: as for `run`.
            runs: number of runs after one uncounted run; the result is the run with the median
                time.

        Raises:
            ExecutionError: the model was not compiled with `profile=True`.
            InvalidInputError: an input is missing, unknown, or has a wrong dtype or shape.
        """
        with boundary("profile"):
            if runs < 1:
                raise InvalidInputError(f"runs is {runs}, accepted are 1 and more")
            return profile_of(lambda: self.timed(inputs), runs)

    def verify(
        self,
        inputs: Inputs,
        *,
        model: Any = None,
        against: str | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        nodes: bool = False,
    ) -> Verification:
        """Compares the outputs of a run with those of an oracle.

        If an output differs, the model is compiled again with the tensors between its regions as
        outputs. The first region that differs is then compared by its nodes, until the smallest
        part is found that differs on its own. See docs/debugging.md.

        Args:
            inputs: as for `run`.
            model: the model that was compiled. It may be omitted if the model was compiled from a
                file's path; other models are not kept.
            against: `"onnxruntime"`; `"reference"`, ONNX's reference evaluator; or `"host"`, the
                host compiler alone, without the passes that can be disabled. By default, ONNX
                Runtime if it is installed, else the reference.
            rtol: relative tolerance: elements may differ by `atol + rtol * |wanted|`. By default,
                it depends on the type: 1e-4 for `f32`.
            atol: absolute tolerance; by default, `rtol` of the tensor's largest element.
            nodes: true to compare all nodes even if the outputs agree; the model is compiled again
                with all tensors as outputs.

        Raises:
            ExecutionError: the executable came from a file or a pickle, or the oracle cannot run
                the model.
            InvalidModelError: the model is in MLIR, which no oracle reads, or the argument `model`
                is missing.
            BackendError: the oracle is not installed.
        """
        from byoc_mlir.runtime.verification import Asked

        with boundary("verify"):
            asked = Asked(Arguments(self.inputs).by_name(inputs), model, against, rtol, atol, nodes)
            return self._verifying().verify(self, asked)

    def bisect(
        self,
        inputs: Inputs,
        *,
        model: Any = None,
        against: str | None = None,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> Bisection:
        """Verifies as `verify` does; if an output differs, also finds the pattern, pass or backend
        that causes the difference.

        The method halves the set of names that `compile(disable=…)` accepts, until as few as
        possible remain.
        """
        from byoc_mlir.runtime.verification import Asked

        with boundary("bisect"):
            asked = Asked(Arguments(self.inputs).by_name(inputs), model, against, rtol, atol)
            return self._verifying().bisect(self, asked)

    def _verifying(self) -> Verifier:
        if self._verifier is None:
            raise ExecutionError("the executable came from a file; compile the model to verify it")
        self.node.settled()  # verifies the compiled tier, not the interpreter tier
        return self._verifier

    def verify_with(self, verifier: Verifier) -> None:
        """Sets the implementation of `verify` and `bisect`."""
        self._verifier = verifier

    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        """Compiles a model with dynamic shapes for expected input shapes.

        The compiler measures what it otherwise estimates: latencies of a library's primitives, and
        of small regions on their backend and on the host. Later compilations use them too.

        For a model that is split into segments, only the first segment is compiled: the shapes of
        later ones depend on its outputs.

        Raises:
            InvalidInputError: the shapes do not fit the model's inputs.
        """
        with boundary("warmup"), measuring():
            self.node.warmup(shapes)

    def wait(self) -> None:
        """Waits for the compiled tier of a model with tiered execution, see
        docs/tiered-execution.md.

        Raises:
            ByocError: the model cannot be compiled.
        """
        self.node.wait()

    def report(self) -> Report:
        """Returns the placement of every ONNX node with its reason, for the shapes used last.

        For a model with segments, the report has the segments that are compiled.

        Raises:
            ExecutionError: the model has dynamic shapes and has not run yet.
        """
        from byoc_mlir.runtime.plan_report import report_of

        return report_of(self.plan)

    @property
    def plan(self) -> Node:
        """Returns the plan, with all programs that are compiled so far."""
        return self.node.known()

    @property
    def program(self) -> Program:
        """Returns the compiled program for the shapes used last.

        For a model with segments, it is the program of the first segment.

        Raises:
            ExecutionError: as `report`.
        """
        from byoc_mlir.runtime.plan_report import program_of

        return program_of(self.plan)

    def close(self) -> None:
        """Frees all native memory; no run may be active, and none may follow."""
        self._is_closed = True
        self.node.close()

    def timed(self, inputs: Inputs) -> TimedRun:
        """Runs the model once, and returns its times if it was compiled with `profile=True`.

        Arguments and errors are those of `run`.
        """
        parts: list[TimedPart] = []
        start = time.perf_counter()
        outputs = self.node.run(inputs, parts)
        return TimedRun(outputs, time.perf_counter() - start, tuple(parts))

    @property
    def threads(self) -> int:
        """Returns the number of OpenMP threads of a run."""
        return self.program.threads

    def get_source(self, region: str) -> str:
        """Returns the text that a backend generated for a region: C, or a graph in its own format.

        Raises:
            ExecutionError: the region does not exist, or its code is not text.
        """
        program = self.program
        if region not in program.sources:
            kind = "is not text" if region in program.regions else "does not exist"
            raise ExecutionError(
                f"the source of region '{region}' {kind}; there is source of"
                f" {', '.join(program.sources) or 'no region'}"
            )
        return program.sources[region]

    def export_library(
        self,
        path: str | Path,
        *,
        shapes: Mapping[str, Shape] | None = None,
        name: str | None = None,
    ) -> Path:
        """Writes one shared object with code, weights and runtime, and a C header next to it.

        `byoc_mlir.load` opens it without the compiler, and C programs call it. If a region runs in
        Python, a warning says that only `byoc_mlir.load` can use the file.

        Args:
            path: path of the shared object, `model.so`; the header is `model.h`.
            shapes: shapes of all inputs, for a model with dynamic shapes. By default, sizes are
                arguments of the C functions; this requires one shape-polymorphic program for all
                sizes.
            name: prefix of the C functions; by default, it is derived from the file's name.

        Returns:
            The header's path.

        Raises:
            ExportError: the model cannot be exported; the message gives the reason.
            ToolchainError: there is no C compiler.
            InvalidInputError: the shapes do not fit the model's inputs.
        """
        return self._export("library", path, shapes, name)

    def export_object(
        self,
        path: str | Path,
        *,
        shapes: Mapping[str, Shape] | None = None,
        name: str | None = None,
    ) -> Path:
        """Writes one object file with code, weights and runtime, which C programs link, and a C
        header.

        Arguments, result and errors are those of `export_library`, except that a region that runs
        in Python raises `ExportError`.
        """
        return self._export("object", path, shapes, name)

    def _export(
        self,
        kind: FileKind,
        path: str | Path,
        shapes: Mapping[str, Shape] | None,
        name: str | None,
    ) -> Path:
        with boundary("export"):
            plan = self.node.exported(shapes)
            if self._exporter is None:
                raise ExportError("the model was loaded from a file; copy that file")
            return self._exporter(kind, plan, Path(path), name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the content of a pickle: the program in a container, with the checks of a file.

        A model that may need further programs is pickled as its source model, and compiled again.
        """
        if self._is_closed:
            raise ExecutionError("the executable is closed; pickle it before, or compile again")
        if self.node.settled().is_complete:
            from byoc_mlir.runtime.files.pickled import packed

            return _unpickled, (*packed(self.program), self._exporter)
        if self._remake is None:
            raise ExportError("the model cannot be pickled: compile or load it in each process")
        return self._remake, ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Executable ({', '.join(map(str, self.inputs))}) -> ({', '.join(self.outputs)})>"


def _unpickled(content: bytes, threads: int | None, exporter: Exporter | None) -> Executable:
    from byoc_mlir.runtime.execution.complete import loaded
    from byoc_mlir.runtime.files.pickled import unpacked

    return Executable(loaded(unpacked(content, threads)), exporter)
