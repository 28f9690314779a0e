"""The executable of a model whose shapes are known when its inputs come."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from byoc_mlir.errors import (
    ExecutionError,
    ExportError,
    InputValuesNeededError,
    ShapesNeededError,
)
from byoc_mlir.limits import DEFAULT_LIMITS
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.destinations import run_into
from byoc_mlir.runtime.executable import Executable, Exporter
from byoc_mlir.runtime.executables.recent import Recent
from byoc_mlir.runtime.executables.sized import SizedProgram
from byoc_mlir.runtime.instance import Instance
from byoc_mlir.runtime.profiled import TimedRun
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import Report, Variant
from byoc_mlir.runtime.system.forks import on_live_threads
from byoc_mlir.tensors import TensorInfo

_Key: TypeAlias = tuple[tuple[Shape, ...], tuple[bytes, ...]]
"""The shapes of all inputs, and the values of those whose values are compiled in."""


class Specialiser(Protocol):
    """Compiles a model for given input shapes, and for the values that shapes depend on."""

    @property
    def value_inputs(self) -> Sequence[str]:
        """Inputs whose values are compiled in, as far as is known yet."""
        ...

    def specialise(self, arrays: Mapping[str, Array]) -> Program:
        """The program for inputs like these."""
        ...

    def generalise(self, shapes: Mapping[str, Shape]) -> SizedProgram | None:
        """The program for inputs of these shapes, and of all for which the same is decided; `None`
        where sizes must be compiled in.
        """
        ...

    def specialise_shapes(self, shapes: Mapping[str, Shape]) -> Program:
        """The program for inputs of these shapes.

        Raises:
            InputValuesNeededError: shapes inside the model depend on the values of an input.
        """
        ...


class SpecialisingExecutable(Executable):
    """A program for each set of input shapes, compiled when the first inputs of those shapes come.

    Its outputs have the names that the program says: of a sequence, their number depends on shapes.

    Args:
        inputs: what the model takes, in order.
        outputs: the names of what it gives, in order.
        specialiser: compiles it.
        exporter: as for `Executable`.
        kept_bytes: the most memory that programs may hold that are not in use.
    """

    def __init__(
        self,
        inputs: Sequence[TensorInfo],
        outputs: Sequence[str],
        specialiser: Specialiser,
        exporter: Exporter | None,
        kept_bytes: int = DEFAULT_LIMITS.kept_bytes,
    ):
        super().__init__(inputs, outputs, exporter)
        self._specialiser = specialiser
        self._kept_bytes = kept_bytes
        self._instances = Recent[_Key, Instance](
            most_bytes=kept_bytes, bytes_of=lambda instance: instance.held_bytes
        )

    @property
    def program(self) -> Program:
        return self._instances.latest.program

    def report(self) -> Report:
        shapes: dict[Variant, list[str]] = {}
        for instance in self._instances.known().values():
            for variant in instance.program.report.variants:
                shapes.setdefault(variant, []).append(_input_shapes(instance.program))
        variants = (replace(one, shapes=tuple(texts)) for one, texts in shapes.items())
        return replace(self.program.report, variants=tuple(variants))

    @property
    def count(self) -> int:
        """How many programs there are now."""
        return len(self._instances.known())

    def close(self) -> None:
        self._instances.close()

    def _run(self, inputs: Inputs) -> dict[str, Array]:
        return self.run_checked(self._arguments.checked(inputs))

    def _run_into(self, inputs: Inputs, out: Mapping[str, Any]) -> dict[str, Array]:
        return self.run_checked(self._arguments.checked(inputs), out)

    def run_checked(
        self, arrays: Sequence[Array], out: Mapping[str, Any] | None = None
    ) -> dict[str, Array]:
        """As `run`, on arrays that were checked, in the order of `inputs`."""
        instance = self._instance_for(arrays)
        if out is not None:
            return run_into(instance, arrays, out)
        return dict(zip(instance.output_names, instance.run(arrays), strict=True))

    def timed(self, inputs: Inputs) -> TimedRun:
        start = time.perf_counter()
        arrays = self._arguments.checked(inputs)
        instance = self._instance_for(arrays)
        values, part = instance.timed(arrays)
        outputs = dict(zip(instance.output_names, values, strict=True))
        return TimedRun(outputs, time.perf_counter() - start, (part,))

    def _warmup(self, shapes: Mapping[str, Shape]) -> None:
        self._instance_of_shapes(shapes)

    def _exported(self, shapes: Mapping[str, Shape] | None) -> Program:
        return self.exported(shapes)

    def exported(self, shapes: Mapping[str, Shape] | None) -> Program:
        """The program for these shapes.

        Raises:
            ShapesNeededError: none are given.
            ExportError: they depend on values.
        """
        if shapes is None:
            raise ShapesNeededError(
                "shapes or values are compiled in when the first inputs come; to export the model,"
                f" give the shapes of {', '.join(map(str, self.inputs))} as shapes={{...}}"
            )
        try:
            return self._instance_of_shapes(shapes).program
        except InputValuesNeededError as error:
            raise ExportError(
                "shapes in the model depend on the values of the inputs"
                f" {', '.join(error.inputs)}, so it cannot be exported"
            ) from error

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickle keeps: the model, which is compiled again."""
        if self._instances.is_closed:
            raise ExecutionError("the executable is closed; pickle it before, or compile again")
        made_of = (self.inputs, self.outputs, self._specialiser, self._exporter, self._kept_bytes)
        return SpecialisingExecutable, made_of

    def _instance_of_shapes(self, shapes: Mapping[str, Shape]) -> Instance:
        checked = self._arguments.shapes(shapes)
        key = (tuple(checked.values()), ())

        def make() -> tuple[_Key, Instance]:
            return key, _loaded(lambda: self._specialiser.specialise_shapes(checked))

        return self._instances.get(lambda: key, make)

    def _instance_for(self, arrays: Sequence[Array]) -> Instance:
        named = {info.name: array for info, array in zip(self.inputs, arrays, strict=True)}

        def make() -> tuple[_Key, Instance]:
            instance = _loaded(lambda: self._specialiser.specialise(named))
            return self._key(named), instance  # compiling may have found that more values matter

        return self._instances.get(lambda: self._key(named), make)

    def _key(self, arrays: Mapping[str, Array]) -> _Key:
        values = tuple(arrays[name].tobytes() for name in self._specialiser.value_inputs)
        return tuple(array.shape for array in arrays.values()), values


def _input_shapes(program: Program) -> str:
    return ", ".join(f"{spec.name}{list(spec.shape)}" for spec in program.inputs)


def _loaded(specialise: Callable[[], Program]) -> Instance:
    return on_live_threads(lambda: Instance(specialise()))()
