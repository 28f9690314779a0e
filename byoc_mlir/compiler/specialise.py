"""A model that is read, compiled for the inputs that come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from byoc_mlir.boundary import raise_if_strict
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.pipeline import build_program
from byoc_mlir.compiler.sized import build_sized
from byoc_mlir.compiler.source import Shapes, Source, Values
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.errors import CompilationError, InputValuesNeededError, UndecidedSizeError
from byoc_mlir.runtime.executables.sized import SizedProgram
from byoc_mlir.runtime.program import Array, Program

MAX_VALUE_ELEMENTS = 4096
"""Inputs of up to this size are compiled in where shapes depend on their values. Larger ones are
data, and the model would be compiled again for every run."""


class ModelSpecialiser:
    """Compiles a model for given inputs; remembers which values shapes depend on."""

    def __init__(self, source: Source, options: CompileOptions):
        self._source = source
        self._options = options
        self.value_inputs: tuple[str, ...] = ()
        self._problems: tuple[str, ...] = ()
        """Why sizes are compiled in, once that is known."""

    def __reduce__(self) -> tuple[Any, ...]:
        return ModelSpecialiser, (self._source, self._options)

    def specialise(self, arrays: Mapping[str, Array]) -> Program:
        """The program for inputs of these shapes, with the values that shapes depend on."""
        shapes = {name: array.shape for name, array in arrays.items()}
        while True:
            values = {name: arrays[name].copy() for name in self.value_inputs}
            try:
                return self._program(shapes, values)
            except InputValuesNeededError as error:
                if any(arrays[name].size > MAX_VALUE_ELEMENTS for name in error.inputs):
                    raise
                self.value_inputs = tuple(sorted({*self.value_inputs, *error.inputs}))

    def generalise(self, shapes: Shapes) -> SizedProgram | None:
        """The program for all input shapes for which the same is decided as for these; `None`
        where some part of the model needs numbers, or the user wants a backend to take it.

        What fails is compiled for each set of shapes; errors of the model come up there. That a
        part needs numbers is an `UndecidedSizeError`; else a defect stands behind it.
        """
        if not self._may_generalise():
            return None
        try:
            with ir_boundary("compile"):
                sized = build_sized(self._source, shapes, replace(self._options, targets=()))
        except (UndecidedSizeError, CompilationError) as error:
            if isinstance(error, CompilationError):
                raise_if_strict(error)
            self._problems = (f"a program for each set of shapes is compiled: {error}",)
            return None
        self._source.tensors.check_unchanged()
        return sized

    def _may_generalise(self) -> bool:
        options = self._options
        if self._problems:
            return False
        if not options.targets:
            return True
        return options.is_default and options.precision == "f32"

    def specialise_shapes(self, shapes: Shapes) -> Program:
        """The program for inputs of these shapes, whatever their values."""
        return self._program(shapes, {})

    def _program(self, shapes: Shapes, values: Values) -> Program:
        program = build_program(self._source, shapes, values, self._options, self._problems)
        self._source.tensors.check_unchanged()
        return program
