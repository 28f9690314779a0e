"""Programs of a model from the cache; what is not there is compiled and put there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from byoc_mlir.compiler.cache.cached_model import CachedModel, ModelEntry
from byoc_mlir.compiler.cache.stored_weights import StoredWeights
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.errors import InputValuesNeededError
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.executables.sized import SizedProgram
from byoc_mlir.runtime.executables.sized_executable import MOST_VARIANTS
from byoc_mlir.runtime.executables.specialising import Specialiser
from byoc_mlir.runtime.files.stored_sizes import StoredSizes
from byoc_mlir.runtime.program import Array, ObjectCode, Program
from byoc_mlir.warned import noted_warnings

if TYPE_CHECKING:
    from byoc_mlir.compiler.options import CompileOptions
    from byoc_mlir.compiler.source import Source

_T = TypeVar("_T")


def cached_specialiser(
    model: CachedModel, source: Source, options: CompileOptions, make: Callable[[], Specialiser]
) -> Specialiser:
    """What gives the programs of a model, by way of the cache if the model can be there.

    Args:
        make: gives what compiles the model.
    """
    entry = model.read_entry() or model.new_entry(source, options)
    return make() if entry is None else CachedSpecialiser(model, entry, make)


class CachedSpecialiser:
    """Takes programs from the cache; what is not there is compiled and put there.

    Args:
        make: gives what makes the programs, when it is first needed; left out, the model is read
            for that.
    """

    def __init__(
        self, model: CachedModel, entry: ModelEntry, make: Callable[[], Specialiser] | None = None
    ):
        self._model = model
        self._entry = entry
        self._make = make
        self._compiler: Specialiser | None = None
        self._weights = StoredWeights(model.cache)

    @property
    def value_inputs(self) -> tuple[str, ...]:
        return self._entry.value_inputs

    def specialise(self, arrays: Mapping[str, Array]) -> Program:
        """The program for inputs of these shapes, with the values that shapes depend on."""
        found = self._model.read_program(self._key(arrays), self._weights)
        if found is not None:
            return found
        compiler = self._compiler_now()
        program, said = _recorded(lambda: compiler.specialise(arrays))
        values = tuple(sorted({*self._entry.value_inputs, *compiler.value_inputs}))
        if values != self._entry.value_inputs:
            self._change_entry(replace(self._entry, value_inputs=values))
        self._keep(self._key(arrays), program, said)
        return program

    def _change_entry(self, entry: ModelEntry) -> None:
        self._entry = entry
        self._model.write_entry(entry)

    def generalise(self, shapes: Mapping[str, Shape]) -> SizedProgram | None:
        """The program for inputs of these shapes, and of all for which the same is decided; `None`
        where sizes must be compiled in.
        """
        if self._entry.needs_numbers:
            return None
        for number in range(MOST_VARIANTS):
            key = self._model.sized_key(self._entry, number)
            found = self._model.read_sized(key, self._weights)
            if found is None:
                return self._generalised(shapes, number, key)
            if found.is_for(found.sizes([shapes[spec.name] for spec in found.program.inputs])):
                return found
        return None

    def _generalised(
        self, shapes: Mapping[str, Shape], number: int, key: str
    ) -> SizedProgram | None:
        compiler = self._compiler_now()
        sized, said = _recorded(lambda: compiler.generalise(shapes))
        if sized is not None:
            self._keep(key, sized.program, said, StoredSizes.of(sized))
        elif number == 0:
            self._change_entry(replace(self._entry, needs_numbers=True))
        return sized

    def specialise_shapes(self, shapes: Mapping[str, Shape]) -> Program:
        """The program for inputs of these shapes, whatever their values."""
        if self._entry.value_inputs:
            raise InputValuesNeededError((), self._entry.value_inputs)
        key = self._model.program_key(self._entry, shapes, {})
        found = self._model.read_program(key, self._weights)
        if found is not None:
            return found
        compiler = self._compiler_now()
        program, said = _recorded(lambda: compiler.specialise_shapes(shapes))
        self._keep(key, program, said)
        return self._with_weights_mapped(program) if self._alone_has_weights else program

    def _keep(
        self, key: str, program: Program, said: tuple[str, ...], sizes: StoredSizes | None = None
    ) -> None:
        if self._entry.is_current():
            self._model.write_program(key, program, said, self._weights, sizes)

    @property
    def _alone_has_weights(self) -> bool:
        """Whether nobody else has the weights of a program: it is the only one of a file."""
        model = self._model.request.model
        is_file = isinstance(model, Snapshot) and model.path is not None
        return is_file and all(info.is_static for info in self._entry.inputs)

    def _with_weights_mapped(self, program: Program) -> Program:
        code = program.code
        assert isinstance(code, ObjectCode)
        return replace(program, code=replace(code, weights=self._weights.mapped(code.weights)))

    def _key(self, arrays: Mapping[str, Array]) -> str:
        values = {name: arrays[name] for name in self._entry.value_inputs}
        shapes = {name: array.shape for name, array in arrays.items()}
        return self._model.program_key(self._entry, shapes, values)

    def _compiler_now(self) -> Specialiser:
        if self._compiler is None:
            self._compiler = self._read() if self._make is None else self._make()
        return self._compiler

    def _read(self) -> Specialiser:
        from byoc_mlir.compiler.execution.model import specialiser

        return specialiser(self._model.request)


def _recorded(compile_program: Callable[[], _T]) -> tuple[_T, tuple[str, ...]]:
    """A program, and the warnings that were given while it was compiled."""
    with noted_warnings() as said:
        program = compile_program()
    return program, tuple(said)
