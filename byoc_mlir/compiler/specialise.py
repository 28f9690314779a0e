"""A model that is read, compiled for the inputs that come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from byoc_mlir.boundary import raise_if_strict
from byoc_mlir.compiler.dynamic import build_dynamic
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.pipeline import build_program
from byoc_mlir.compiler.source import Shapes, Source, Values
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.errors import CompilationError, UndecidedSizeError
from byoc_mlir.runtime.program import Program


class ModelCompiler:
    """Compiles a model that runs in one piece."""

    def __init__(self, source: Source, options: CompileOptions):
        self._source = source
        self._options = options
        self._problems: Sequence[str] = ()
        """Why sizes are compiled in, once that is known."""

    def program(self, shapes: Shapes, values: Values) -> Program:
        """Returns the program for inputs of these shapes, with the values that shapes depend on.

        Raises:
            InputValuesNeededError: they depend on others, too.
        """
        program = build_program(self._source, shapes, values, self._options, self._problems)
        self._source.tensors.check_unchanged()
        return program

    def generic(self, shapes: Shapes) -> Program | None:
        """Returns the program for all input shapes for which the same is decided as for these;
        `None` where some part of the model needs numbers, or the user wants a backend to take it.

        What fails is compiled for each set of shapes; errors of the model come up there. That a
        part needs numbers is an `UndecidedSizeError`; else a defect stands behind it.
        """
        if not self._may_be_generic():
            return None
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
