"""`Executable`: what `byoc_mlir.compile` and `byoc_mlir.load` return."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from byoc_mlir.boundary import boundary, translated
from byoc_mlir.errors import ByocError, ExecutionError, ExportError, InvalidInputError
from byoc_mlir.runtime.arguments import Arguments, Inputs, Shape
from byoc_mlir.runtime.destinations import check_names, copied_into
from byoc_mlir.runtime.execution.complete import loaded
from byoc_mlir.runtime.execution.leaf import LoadedLeaf
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.files.pickled import packed, unpacked
from byoc_mlir.runtime.plan import Node
from byoc_mlir.runtime.plan_report import program_of, report_of
from byoc_mlir.runtime.profile import Profile
from byoc_mlir.runtime.profiled import TimedPart, TimedRun, profile_of
from byoc_mlir.runtime.program import Program
from byoc_mlir.runtime.report import Report

if TYPE_CHECKING:
    from byoc_mlir.runtime.verification import Asked, Bisection, Verification

FileKind: TypeAlias = Literal["library", "object"]


class Exporter(Protocol):
    """Writes a plan to a file: `artifact.write`, which the compiler hands in."""

    def __call__(
        self,
        kind: FileKind,
        plan: Node,
        path: Path,
        name: str | None,
        /,
    ) -> Path: ...


class Verifier(Protocol):
    """Compares an executable with an oracle, which the compiler knows how to do."""

    def verify(self, executable: Executable, asked: Asked, /) -> Verification: ...

    def bisect(self, executable: Executable, asked: Asked, /) -> Bisection: ...


class Executable:
    """A compiled model. `run` may be called from several threads at once.

    Args:
        node: the plan, loaded.
        exporter: writes the plan to a file; left out where it came from one.
        remake: compiles the model again, in the process that reads it from a pickle; left out where
            that cannot be done.
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
            inputs: arrays by input name, or in the order of `self.inputs`. A sequence is a list
                of arrays, an optional may be `None`.
            out: arrays by output name, into which those outputs are written: C-contiguous, of the
                output's dtype and shape, and not in memory that an input or another output has:
                only an output of `program.aliases` may be the array of its input, which it then
                takes the place of. The other outputs are new arrays.

        Returns:
            The outputs by name, as arrays of the caller's own; sequences and optionals as they are
            given.

        Raises:
            InvalidInputError: an input is missing, unknown, or has a wrong dtype or shape; or an
                array of `out` is.
            ExecutionError: a native call failed, or the executable is closed.
            OutOfMemoryError: there is no memory for the outputs, or for the arena.
        """
        try:  # a context manager takes a tenth of a small model's time
            return self.node.run(inputs, None) if out is None else self._run_into(inputs, out)
        except ByocError as error:
            error.locate("run", None)
            raise
        except Warning:
            raise
        except Exception as error:
            raise translated(error, "run") from error

    def profile(self, inputs: Inputs, runs: int = 10) -> Profile:
        """How long each step of a run takes.

        Args:
            inputs: as for `run`.
            runs: of which the one that took the median time is told of; one before them is not
                counted.

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
        """Compares what a run gives with what an oracle says the model computes.

        Where an output differs, the model is compiled again with what crosses between its regions
        as outputs, and the first region that differs node by node, until the smallest part is
        found that differs alone. See docs/debugging.md.

        Args:
            inputs: as for `run`.
            model: what was compiled, if that was not the path of a file: other models are not
                kept.
            against: `"onnxruntime"`, `"reference"`: ONNX's reference evaluator, `"host"`: the host
                compiler alone, without the passes that may be left out. Left out: ONNX Runtime
                where it is installed, else the reference.
            rtol: elements may be off by `atol + rtol * |wanted|`. Left out: by the type, 1e-4 for
                `f32`.
            atol: left out: `rtol` of the largest element of the tensor.
            nodes: whether to compare all nodes of a model that agrees, too; it is compiled again
                with all tensors as outputs.

        Raises:
            ExecutionError: the executable came from a file or a pickle, or the oracle cannot run
                the model.
            InvalidModelError: the model is in MLIR, which no oracle reads, or is needed here.
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
        """As `verify`; where an output differs, it also finds the pattern, the pass or the backend
        without which it does not.

        What may be left out (`compile(disable=…)`) is halved until as little as possible is named.
        """
        from byoc_mlir.runtime.verification import Asked

        with boundary("bisect"):
            asked = Asked(Arguments(self.inputs).by_name(inputs), model, against, rtol, atol)
            return self._verifying().bisect(self, asked)

    def _verifying(self) -> Verifier:
        if self._verifier is None:
            raise ExecutionError("the executable came from a file; compile the model to verify it")
        self.node.settled()  # the program is verified, not what answers before it is there
        return self._verifier

    def verify_with(self, verifier: Verifier) -> None:
        """Sets what `verify` and `bisect` do."""
        self._verifier = verifier

    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        """Compiles a model with symbolic dimensions for input shapes that are expected.

        Of a model that runs in stages, the first is compiled: the others wait for what it gives.

        Raises:
            InvalidInputError: the shapes do not fit the model's inputs.
        """
        with boundary("warmup"):
            self.node.warmup(shapes)

    def wait(self) -> None:
        """Waits for the program of a model that answers node by node until then, see
        docs/tiered-execution.md.

        Raises:
            ByocError: the model cannot be compiled.
        """
        self.node.wait()

    def report(self) -> Report:
        """Where every ONNX node went and why, for the shapes used last; of a model in stages, of
        those that are compiled.

        Raises:
            ExecutionError: the model has symbolic dimensions and was not run yet.
        """
        return report_of(self.plan)

    @property
    def plan(self) -> Node:
        """What the model became, with all programs that are compiled now."""
        return self.node.known()

    @property
    def program(self) -> Program:
        """The compiled program for the shapes used last; of a model in stages, that of the first.

        Raises:
            ExecutionError: as `report`.
        """
        return program_of(self.plan)

    def close(self) -> None:
        """Frees all native memory; nothing may be running. The executable is of no use then."""
        self._is_closed = True
        self.node.close()

    def timed(self, inputs: Inputs) -> TimedRun:
        """One run, and where its time went, as far as the model was compiled with `profile=True`.

        Arguments and errors are those of `run`.
        """
        parts: list[TimedPart] = []
        start = time.perf_counter()
        outputs = self.node.run(inputs, parts)
        return TimedRun(outputs, time.perf_counter() - start, tuple(parts))

    def _run_into(self, inputs: Inputs, out: Mapping[str, Any]) -> dict[str, Any]:
        """As `run`; of what is no leaf by a copy of its results."""
        if isinstance(self.node, LoadedLeaf):
            return self.node.run_into(inputs, out)
        check_names(out, self.outputs)
        return copied_into(self.node.run(inputs), out)

    @property
    def threads(self) -> int:
        """OpenMP threads that a run uses."""
        return self.program.threads

    def get_source(self, region: str) -> str:
        """What a backend generated for a region, as text: C, or a graph in its own format.

        Raises:
            ExecutionError: there is no such region, or its code is not text.
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
        """Writes one shared object that holds everything, and a C header next to it.

        `byoc_mlir.load` opens it without the compiler, and C programs call it. When a region runs
        in Python a warning says so: then `byoc_mlir.load` alone can use the file.

        Args:
            path: of the shared object, `model.so`; the header is `model.h`.
            shapes: of all inputs, for a model with symbolic dimensions. Left out, sizes are
                arguments of the C functions, where one program can serve all.
            name: prefix of the C functions; left out, it is made of the file's name.

        Returns:
            The header's path.

        Raises:
            ExportError: the model cannot be exported; the message says why.
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
        """Writes one object file that holds everything, for C programs to link, and a C header.

        Arguments, result and errors as for `export_library`; but a region that runs in Python is
        an `ExportError`.
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
        """Returns what pickle keeps: the program, in a container with the checks of a file; where
        there can be others the model, which is compiled again.
        """
        if self._is_closed:
            raise ExecutionError("the executable is closed; pickle it before, or compile again")
        if self.node.settled().is_complete:
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
    return Executable(loaded(unpacked(content, threads)), exporter)
