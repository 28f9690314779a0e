"""The executable of a model whose sizes are arguments of its code."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from byoc_mlir.errors import ByocError, ExecutionError, ExportError
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.destinations import destinations
from byoc_mlir.runtime.executable import Executable, Exporter, Step
from byoc_mlir.runtime.executables.sized import Call, SizedInstance, SizedProgram
from byoc_mlir.runtime.executables.specialising import Specialiser, SpecialisingExecutable
from byoc_mlir.runtime.profiled import TimedRun
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import Report
from byoc_mlir.runtime.system.forks import ForkSafeLock, on_live_threads
from byoc_mlir.tensors import TensorInfo

_Shapes: TypeAlias = tuple[Shape, ...]
_Found: TypeAlias = tuple[SizedInstance, Call] | None
"""A program for many shapes, and what a call needs; `None` where sizes are compiled in."""

MOST_VARIANTS = 4
"""Programs of one model; further shapes are compiled in."""
_USUAL_SIZE = 16
"""For which choices of speed are made, where nothing is known of sizes."""
_MOST_CALLS = 4096
"""Sets of shapes whose sizes are remembered."""


class SizedExecutable(Executable):
    """Programs for all shapes; where a model needs numbers, one for each set of shapes.

    Args:
        inputs: what the model takes, in order.
        outputs: the names of what it gives, in order.
        specialiser: compiles it.
        exporter: as for `Executable`.
        kept_bytes: as for `SpecialisingExecutable`.
        known: programs for all shapes that there are already.
    """

    def __init__(
        self,
        inputs: Sequence[TensorInfo],
        outputs: Sequence[str],
        specialiser: Specialiser,
        exporter: Exporter | None,
        kept_bytes: int,
        known: Sequence[SizedProgram] = (),
    ):
        super().__init__(inputs, outputs, exporter)
        self._specialiser = specialiser
        self._special = SpecialisingExecutable(inputs, outputs, specialiser, exporter, kept_bytes)
        self._kept_bytes = kept_bytes
        self._variants = [on_live_threads(SizedInstance)(sized) for sized in known]
        self._calls: dict[_Shapes, _Found] = {}
        self._latest = self._variants[0] if self._variants else None
        self._lock = ForkSafeLock()
        self._is_closed = False

    @property
    def program(self) -> Program:
        return self._special.program if self._latest is None else self._latest.program

    def report(self) -> Report:
        own = (one for instance in self._variants for one in instance.program.report.variants)
        others = self._special.report().variants if self.compiled_in else ()
        return replace(self.program.report, variants=(*own, *others))

    @property
    def variants(self) -> Sequence[SizedProgram]:
        """The programs for all shapes that there are, each with its guards."""
        return tuple(instance.sized for instance in self._variants)

    @property
    def compiled_in(self) -> int:
        """Number of sets of shapes that are compiled in."""
        return self._special.count

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            for instance in self._variants:
                instance.close()
            self._special.close()

    def _run(self, inputs: Inputs) -> dict[str, Array]:
        return self._run_into(inputs, None)

    def _run_into(self, inputs: Inputs, out: Mapping[str, Any] | None) -> dict[str, Array]:
        arrays = self._arguments.of_any_shape(inputs) or []
        shapes = tuple([array.shape for array in arrays])
        if shapes not in self._calls:  # those that came before are right
            arrays = self._arguments.checked(inputs)
            shapes = tuple([array.shape for array in arrays])
        found = self._found(shapes)
        if found is None:
            return self._special.run_checked(arrays, out)
        instance, call = found
        outputs = None
        if out is not None:
            outputs = destinations(instance.program, call.outputs, arrays, out)
        values = instance.run_sized(call, arrays, outputs)
        return dict(zip(instance.output_names, values))  # noqa: B905, it takes longer

    def steps(self, inputs: Mapping[str, Array], changing: Sequence[str]) -> Step:
        arrays = self._arguments.checked(inputs)
        shapes = [array.shape for array in arrays]
        numbers = {info.name: number for number, info in enumerate(self.inputs)}
        places = [numbers[name] for name in changing]

        def step(given: Sequence[Array]) -> Sequence[Array]:
            for place, array in zip(places, given):  # noqa: B905, it takes longer
                arrays[place] = array
                shapes[place] = array.shape
            found = self._found(tuple(shapes))
            if found is None:
                return list(self._special.run_checked(arrays).values())
            instance, call = found
            return instance.run_sized(call, arrays)

        return step

    def timed(self, inputs: Inputs) -> TimedRun:
        start = time.perf_counter()
        arrays = self._arguments.checked(inputs)
        found = self._found(tuple(array.shape for array in arrays))
        if found is None:
            return self._special.timed(arrays)
        instance, call = found
        values, part = instance.timed_sized(call, arrays)
        outputs = dict(zip(instance.output_names, values, strict=True))
        return TimedRun(outputs, time.perf_counter() - start, (part,))

    def _warmup(self, shapes: Mapping[str, Shape]) -> None:
        checked = self._arguments.shapes(shapes)
        if self._found(tuple(checked.values())) is None:
            self._special.warmup(checked)

    def _exported(self, shapes: Mapping[str, Shape] | None) -> Program | SizedProgram:
        if shapes is not None:
            return self._special.exported(shapes)
        if self._latest is not None:
            return self._latest.sized
        try:
            with self._lock:
                self._latest = self._generalised(
                    {one.name: usual_shape(one) for one in self.inputs}
                )
        except ByocError as error:
            raise ExportError(
                f"the model does not compile for sizes of {_USUAL_SIZE}, which are tried where it"
                f" was not run yet: {error}; run it, or give shapes={{...}}"
            ) from error
        return self._special.exported(None) if self._latest is None else self._latest.sized

    def _found(self, shapes: _Shapes) -> _Found:
        """What serves input shapes.

        Raises:
            ExecutionError: the executable is closed.
            InvalidInputError: inputs disagree about a size.
        """
        try:
            found = self._calls[shapes]
        except KeyError:
            with self._lock:
                found = self._made(shapes)
        self._latest = None if found is None else found[0]
        return found

    def _made(self, shapes: _Shapes) -> _Found:
        if self._is_closed:
            raise ExecutionError("the executable is closed; compile the model again")
        if shapes in self._calls:
            return self._calls[shapes]
        return self._remember(shapes, self._made_for(shapes))

    def _named(self, shapes: _Shapes) -> dict[str, Shape]:
        return {info.name: shape for info, shape in zip(self.inputs, shapes, strict=True)}

    def _remember(self, shapes: _Shapes, found: _Found) -> _Found:
        if len(self._calls) == _MOST_CALLS:
            self._calls.clear()
        self._calls[shapes] = found
        return found

    def _made_for(self, shapes: _Shapes) -> _Found:
        """What serves shapes that did not come before."""
        served = self._serving(shapes) or self._serving_further(shapes)
        if served is None:
            return None
        instance, sizes = served
        return instance, instance.call(sizes)

    def _serving(self, shapes: _Shapes) -> tuple[SizedInstance, Mapping[str, int]] | None:
        """The program that there is, and the sizes of its symbols."""
        for instance in self._variants:
            sizes = instance.sized.sizes(shapes)
            if instance.sized.is_for(sizes):
                return instance, sizes
        return None

    def _serving_further(self, shapes: _Shapes) -> tuple[SizedInstance, Mapping[str, int]] | None:
        """As `_serving`, after a further program was made."""
        made = [instance.sized for instance in self._variants]
        if any(sized.is_made_for(sized.sizes(shapes)) for sized in made):
            return None  # a further one would be the same
        return None if self._generalised(self._named(shapes)) is None else self._serving(shapes)

    def _generalised(self, shapes: Mapping[str, Shape]) -> SizedInstance | None:
        """A further program for many shapes, with these as its hints."""
        if len(self._variants) == MOST_VARIANTS:
            return None
        sized = on_live_threads(self._specialiser.generalise)(shapes)
        if sized is None:
            return None
        instance = on_live_threads(SizedInstance)(sized)
        self._variants.append(instance)
        return instance

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickle keeps: the model, which is compiled again."""
        if self._is_closed:
            raise ExecutionError("the executable is closed; pickle it before, or compile again")
        made_of = (self.inputs, self.outputs, self._specialiser, self._exporter, self._kept_bytes)
        return SizedExecutable, made_of


def usual_shape(info: TensorInfo) -> Shape:
    """The shape of an input for which choices of speed are made, where nobody says one."""
    return tuple(size if isinstance(size, int) else _USUAL_SIZE for size in info.shape)
