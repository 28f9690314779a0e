"""Programs of a model that runs in one piece: from the cache, or else compiled and added to it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from byoc_mlir.boundary import raise_if_strict
from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.cache.stored_programs import StoredPrograms
from byoc_mlir.compiler.garbage import modules_imported
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import (
    CompilationError,
    DeviceMemoryError,
    InputValuesNeededError,
    UndecidedSizeError,
)
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.execution.dynamic_leaf import MOST_GENERIC, DynamicLeaf
from byoc_mlir.runtime.execution.leaf import LoadedLeaf
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.plan import Leaf
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.system.forks import on_live_threads
from byoc_mlir.tensors import TensorInfo
from byoc_mlir.warned import noted_warnings, warn_user

if TYPE_CHECKING:
    from byoc_mlir.compiler.options import CompileOptions
    from byoc_mlir.compiler.source import Source

MAX_VALUE_ELEMENTS = 4096
"""Maximum number of elements of an input that is compiled in if shapes depend on its values. Larger
inputs are data, and the model would be compiled again for every run.
"""

Reader: TypeAlias = "Callable[[], tuple[Source, CompileOptions]]"
"""Function that reads a model, which takes time and imports the compiler."""


@contextmanager
def compiler_imported() -> Generator[None]:
    """Imports modules of the compiler without garbage collection, and without parsing the formats
    of ops.

    A model whose programs are all in the cache needs none of these modules.
    """
    with modules_imported():
        from byoc_mlir.dialects.late_formats import formats_parsed_late

        with formats_parsed_late():
            yield


class ModelPrograms:
    """Programs of a model; see `runtime.execution.dynamic_leaf.Programs`.

    Args:
        read: function that reads the model, when the first program is compiled.
        stored: programs in the cache; `None` if it keeps nothing.
        problems: earlier problems, for the report; with some, sizes are compiled in.
    """

    def __init__(self, read: Reader, stored: StoredPrograms | None, problems: Sequence[str] = ()):
        self._read = read
        self._problems = problems
        self._stored = stored
        self._model: tuple[Source, CompileOptions] | None = None
        self.value_inputs: Sequence[str] = () if stored is None else stored.entry.value_inputs

    def program(
        self, shapes: Mapping[str, Shape], arrays: Mapping[str, Array] | None = None
    ) -> Program:
        """Returns the program for inputs of these shapes, with the values that shapes depend on.

        Raises:
            InputValuesNeededError: shapes depend on values that are not known, or on large inputs.
        """
        if arrays is None and self.value_inputs and self._stored is not None:
            raise InputValuesNeededError((), self.value_inputs)
        while True:
            values = {} if arrays is None else self._values(arrays)
            key = "" if self._stored is None else self._stored.key(shapes, values)
            try:
                return self._found(key) or self._made(shapes, values, key)
            except InputValuesNeededError as error:
                if arrays is None or any(_is_data(arrays[name]) for name in error.inputs):
                    raise
                self._note_values(error.inputs)

    def generic(self, shapes: Mapping[str, Shape]) -> Program | None:
        """Returns the shape-polymorphic program for these shapes, or `None` if sizes must be
        compiled in.

        The program also serves other shapes that lead to the same decisions.
        """
        stored = self._stored
        if stored is None:
            return self._compiled_generic(shapes)
        if stored.entry.needs_numbers:
            return None
        for number in range(MOST_GENERIC):
            key = stored.generic_key(number)
            found = stored.read(key)
            if found is None:
                return self._made_generic(shapes, key, stored, is_first=not number)
            if _is_for(found, shapes):
                return found
        return None

    def without_device(self, device: str, problem: str) -> ModelPrograms:
        """Returns programs without regions on a device; the cache keeps none of them.

        Args:
            problem: the reason, for the report.
        """

        def read() -> tuple[Source, CompileOptions]:
            source, options = self._read()
            return source, options.without_device(device)

        return ModelPrograms(read, None, (*self._problems, problem))

    def _values(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        names = [name for name in self.value_inputs if not _is_data(arrays[name])]
        return {name: arrays[name].copy() for name in names}

    def _note_values(self, names: Sequence[str]) -> None:
        self.value_inputs = tuple(sorted({*self.value_inputs, *names}))
        if self._stored is not None:
            entry = replace(self._stored.entry, value_inputs=self.value_inputs)
            self._stored.change_entry(entry)

    def _found(self, key: str) -> Program | None:
        return None if self._stored is None else self._stored.read(key)

    def _made(self, shapes: Mapping[str, Shape], values: Mapping[str, Array], key: str) -> Program:
        with noted_warnings() as said:
            program = self._compiled(shapes, values)
        if self._stored is None:
            return program
        self._stored.write(key, program, tuple(said))
        return program if values else self._stored.with_weights_mapped(program)

    def _made_generic(
        self, shapes: Mapping[str, Shape], key: str, stored: StoredPrograms, is_first: bool
    ) -> Program | None:
        with noted_warnings() as said:
            program = self._compiled_generic(shapes)
        if program is not None:
            stored.write(key, program, tuple(said))
        elif is_first:
            stored.change_entry(replace(stored.entry, needs_numbers=True))
        return program

    def _compiled(self, shapes: Mapping[str, Shape], values: Mapping[str, Array]) -> Program:
        source, options = self._read_once()
        with compiler_imported():
            from byoc_mlir.compiler.pipeline import build_program

        program = build_program(source, shapes, values, options, self._problems)
        source.tensors.check_unchanged()
        return program

    def _compiled_generic(self, shapes: Mapping[str, Shape]) -> Program | None:
        """Compiles a shape-polymorphic program of the host, if the options allow it.

        After a failure, each set of shapes is compiled separately, which also reports the model's
        errors. Only `UndecidedSizeError` is an expected failure; other errors are defects.
        """
        source, options = self._read_once()
        if self._problems or not _may_be_generic(options):
            return None
        with compiler_imported():
            from byoc_mlir.compiler.dynamic import build_dynamic

        try:
            program = build_dynamic(source, shapes, replace(options, targets=()))
        except (UndecidedSizeError, CompilationError) as error:
            if isinstance(error, CompilationError):
                raise_if_strict(error)
            self._problems = (f"a program for each set of shapes is compiled: {error}",)
            return None
        source.tensors.check_unchanged()
        return program

    def _read_once(self) -> tuple[Source, CompileOptions]:
        if self._model is None:
            self._model = self._read()
        return self._model


def _may_be_generic(options: CompileOptions) -> bool:
    """True if the user named no backend, and no precision for one."""
    if not options.targets:
        return True
    return options.is_default and options.precision == "f32"


def _is_data(array: Array) -> bool:
    return array.size > MAX_VALUE_ELEMENTS


def _is_for(program: Program, shapes: Mapping[str, Shape]) -> bool:
    sizes = program.sizes
    if sizes is None:
        return False
    return sizes.accept(sizes.of(program.inputs, [shapes[one.name] for one in program.inputs]))


def loaded_leaf(
    inputs: Sequence[TensorInfo],
    outputs: Sequence[str],
    programs: ModelPrograms,
    request: Request,
) -> LoadedNode:
    """Returns the node for a model that runs as one program.

    The program is compiled now if its shapes are known and depend on no values. If a device has too
    little memory for it, it is compiled without that device.

    Args:
        inputs: inputs of the model, in order.
        outputs: names of the model's outputs, in order.
        programs: compiler of the model's programs.
        request: the request, for its limits, and for `load`.
    """
    leaf = Leaf(tuple(inputs), tuple(outputs))
    if not all(info.is_static for info in inputs):
        return DynamicLeaf(leaf, programs, request.limits, load=request.load)
    shapes = {info.name: info.static_shape for info in inputs}
    try:
        program = on_live_threads(partial(programs.program, shapes))()
    except InputValuesNeededError:
        return DynamicLeaf(leaf, programs, request.limits, load=request.load)
    try:
        return LoadedLeaf(program, request.limits, load=request.load)
    except DeviceMemoryError as error:
        if request.fallback == "forbid":
            raise
        problem = f"no region runs on device '{error.device}': {error}"
        warn_user(problem)
        others = programs.without_device(error.device, problem)
        return loaded_leaf(inputs, outputs, others, request)


def leaf_of_source(
    source: Source, options: CompileOptions, place: CachedModel | None
) -> LoadedNode:
    """Returns the node for a source model that runs as one program.

    Args:
        place: the model in the cache; `None` if its programs are not kept.
    """
    entry = None if place is None else place.read_entry() or place.new_entry(source, options)
    stored = None if place is None or entry is None else StoredPrograms(place, entry)
    programs = ModelPrograms(lambda: (source, options), stored)
    return loaded_leaf(source.inputs, source.outputs, programs, options)
