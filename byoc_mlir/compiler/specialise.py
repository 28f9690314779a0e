"""Compilation of a source model on demand, for the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from byoc_mlir.boundary import raise_if_strict
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.pipeline import build_program
from byoc_mlir.compiler.source import Shapes, Source, Values
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.errors import CompilationError, UndecidedSizeError
from byoc_mlir.runtime.program import Program


class ModelCompiler:
    """Compiler of a model that runs as one program."""

    def __init__(self, source: Source, options: CompileOptions):
        self._source = source
        self._options = options
        self._problems: Sequence[str] = ()
        """Reasons why sizes are compiled in, once they are known."""

    def program(self, shapes: Shapes, values: Values) -> Program:
        """Returns the program for inputs of these shapes, with the values that shapes depend on.

        Raises:
            InputValuesNeededError: shapes depend on further values.
        """
        program = build_program(self._source, shapes, values, self._options, self._problems)
        self._source.tensors.check_unchanged()
        return program

    def generic(self, shapes: Shapes) -> Program | None:
        """Returns the shape-polymorphic program for all shapes with the same decisions as these
        shapes.

        Returns `None` if a part of the model requires known sizes, or if the user named a backend.
        After a failure, each set of shapes is compiled separately, which also reports the model's
        errors. Only `UndecidedSizeError` is an expected failure; other errors are defects.
        """
        if not self._may_be_generic():
            return None
        from byoc_mlir.compiler.dynamic import build_dynamic

        try:
            with ir_boundary("compile"):
                found = build_dynamic(self._source, shapes, replace(self._options, targets=()))
        except (UndecidedSizeError, CompilationError) as error:
            if isinstance(error, CompilationError):
                raise_if_strict(error)
            self._problems = (f"a program for each set of shapes is compiled: {error}",)
            return None
        self._source.tensors.check_unchanged()
        return found

    def _may_be_generic(self) -> bool:
        options = self._options
        if self._problems:
            return False
        if not options.targets:
            return True
        return options.is_default and options.precision == "f32"
