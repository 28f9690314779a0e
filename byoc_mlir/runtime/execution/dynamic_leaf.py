"""Leaf of a plan with dynamic shapes: its programs, and the choice of the program for given
inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, Protocol, TypeAlias

from byoc_mlir.errors import (
    ByocError,
    ExecutionError,
    ExportError,
    InputValuesNeededError,
    InvalidInputError,
    ShapesNeededError,
)
from byoc_mlir.limits import Limits
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.runtime.arguments import Arguments, Inputs, Shape
from byoc_mlir.runtime.call import Call
from byoc_mlir.runtime.destinations import destinations
from byoc_mlir.runtime.execution.node import LoadedNode, Named, Parts, Step
from byoc_mlir.runtime.execution.recent import Recent
from byoc_mlir.runtime.instance import Instance, instance_of
from byoc_mlir.runtime.plan import Leaf, leaf_of
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.system.forks import on_live_threads
from byoc_mlir.tensors import TensorInfo

_Shapes: TypeAlias = tuple[Shape, ...]
_Key: TypeAlias = tuple[_Shapes, tuple[bytes, ...]]
"""Key of a specialisation: the shapes of all inputs, and the values of inputs that are compiled in
by value."""
_Found: TypeAlias = tuple[Instance, Call] | None
"""Program that takes sizes, with a call's requirements; None if sizes are compiled in."""

MOST_GENERIC = 4
"""Maximum number of shape-polymorphic programs of a leaf; further shapes get specialisations."""
_USUAL_SIZE = 16
"""Size for which code is optimised, for a symbolic dimension."""
_MOST_CALLS = 4096
"""Maximum number of sets of shapes whose calls are cached."""


class Programs(Protocol):
    """Compiler of a leaf's missing programs."""

    @property
    def value_inputs(self) -> Sequence[str]:
        """Returns the inputs that are known, so far, to be compiled in by value."""
        ...

    def generic(self, shapes: Mapping[str, Shape]) -> Program | None:
        """Returns the program for inputs of these shapes, which may support other shapes as well.

        It supports all shapes with the same compile-time decisions. None if sizes must be compiled
        in.
        """
        ...

    def program(self, shapes: Mapping[str, Shape], arrays: Named | None = None) -> Program:
        """Returns the program for inputs of these shapes.

        Args:
            arrays: the inputs, if their values are known.

        Raises:
            InputValuesNeededError: shapes depend on values that are not known, or on too many
                values.
        """
        ...


class DynamicLeaf(LoadedNode):
    """Leaf whose programs depend on the shapes or values of its inputs.

    Args:
        leaf: inputs, outputs and existing programs.
        programs: compiler of further programs; None if nothing can be compiled, as for a plan from
            a file.
        limits: limits of a call's memory, and of the memory of unused programs.
        load: false to load each program at its first run.
    """

    def __init__(self, leaf: Leaf, programs: Programs | None, limits: Limits, *, load: bool = True):
        self.inputs, self.outputs = leaf.inputs, leaf.outputs
        self._leaf, self._programs, self._limits = leaf, programs, limits
        self._load = load
        self._is_static = all(info.is_static for info in leaf.inputs)
        self._arguments = Arguments(leaf.inputs)
        self._generic = [self._loaded(lambda one=one: one) for one in leaf.programs]
        self._fixed = Recent[_Key, Instance](
            most_bytes=limits.kept_bytes, bytes_of=lambda instance: instance.held_bytes
        )
        self._calls: dict[_Shapes, _Found] = {}
        self._latest = self._generic[-1] if self._generic else None
        """Shape-polymorphic program, if it was used last."""
        self._lock = ForkSafeLock()
        self._is_closed = False

    def run(self, inputs: Inputs, parts: Parts = None) -> dict[str, Any]:
        return self._run_for_sizes(inputs, None, parts)

    def run_into(self, inputs: Inputs, out: Mapping[str, Any]) -> dict[str, Any]:
        return self._run_for_sizes(inputs, out, None)

    def to_device(self, inputs: Named) -> dict[str, Any]:
        checked = self._arguments.some(inputs)
        instance = self._latest or next(iter(self._fixed.known().values()), None)
        return checked if instance is None else instance.placed(checked)

    def _run_for_sizes(
        self, inputs: Inputs, out: Mapping[str, Any] | None, parts: Parts
    ) -> dict[str, Any]:
        arrays = self._arguments.of_any_shape(inputs) or []
        shapes = tuple([array.shape for array in arrays])
        if shapes not in self._calls:  # those that came before are right
            arrays = self._arguments.checked(inputs)
            shapes = tuple([array.shape for array in arrays])
        instance, call = self._taking_sizes(shapes) or (self._fixed_for(arrays), None)
        outputs = None
        if out is not None:
            kinds = instance.outputs if call is None else call.outputs
            outputs = destinations(instance, kinds, arrays, out)
        values = instance.run(arrays, outputs, call, parts)
        return dict(zip(instance.output_names, values))  # noqa: B905, it takes longer

    def steps(self, inputs: Named, changing: Sequence[str]) -> Step:
        arrays = self._arguments.checked(inputs)
        shapes = [array.shape for array in arrays]
        numbers = {info.name: number for number, info in enumerate(self.inputs)}
        places = [numbers[name] for name in changing]

        def step(given: Sequence[Array]) -> Sequence[Array]:
            for place, array in zip(places, given):  # noqa: B905, it takes longer
                arrays[place] = array
                shapes[place] = array.shape
            found = self._taking_sizes(tuple(shapes))
            instance, call = found or (self._fixed_for(arrays), None)
            return instance.run(arrays, None, call)

        return step

    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        checked = self._arguments.shapes(shapes)
        if self._taking_sizes(tuple(checked.values())) is None:
            self._fixed_of_shapes(checked)

    def known(self) -> Leaf:
        latest = self._latest
        generic = [one.program for one in self._generic if one is not latest]
        fixed = [one.program for one in self._fixed.known().values()]
        last = [] if latest is None else [latest.program]
        return replace(self._leaf, programs=(*generic, *fixed, *last))

    def exported(self, shapes: Mapping[str, Shape] | None) -> Leaf:
        if shapes is not None:
            return leaf_of(self._exported_for(shapes))
        try:
            latest = self._latest or self._of_usual_sizes()
        except ByocError as error:
            raise ExportError(
                f"the model does not compile for sizes of {_USUAL_SIZE}, which are tried where it"
                f" was not run yet: {error}; run it, or give shapes={{...}}"
            ) from error
        if latest is None:
            raise ShapesNeededError(
                "shapes or values are compiled in when the first inputs come; to export the model,"
                f" give the shapes of {', '.join(map(str, self.inputs))} as shapes={{...}}"
            )
        return leaf_of(latest.program)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            for instance in self._generic:
                instance.close()
            self._fixed.close()

    def _exported_for(self, shapes: Mapping[str, Shape]) -> Program:
        try:
            return self._fixed_of_shapes(self._arguments.shapes(shapes)).program
        except InputValuesNeededError as error:
            raise ExportError(
                "shapes in the model depend on the values of the inputs"
                f" {', '.join(error.inputs)}, so it cannot be exported"
            ) from error

    def _of_usual_sizes(self) -> Instance | None:
        """Compiles a shape-polymorphic program, optimised for usual sizes, and returns it; None if
        that is not possible.
        """
        with self._lock:
            self._latest = self._made_generic({one.name: usual_shape(one) for one in self.inputs})
            return self._latest

    def _taking_sizes(self, shapes: _Shapes) -> _Found:
        """Returns the shape-polymorphic program for input shapes, and its call, if there is one.

        Raises:
            ExecutionError: the leaf is closed.
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
        found = self._made_for(shapes)
        if len(self._calls) == _MOST_CALLS:
            self._calls.clear()
        self._calls[shapes] = found
        return found

    def _made_for(self, shapes: _Shapes) -> _Found:
        """Returns a program for new shapes, existing or compiled now, with its call; None if sizes
        must be compiled in.
        """
        for instance in self._generic:
            found = _call(instance, shapes)
            if found is not None:
                return found
        if self._is_static or any(_would_be_same(one.program, shapes) for one in self._generic):
            return None
        made = self._made_generic(self._named(shapes))
        return None if made is None else _call(made, shapes)

    def _made_generic(self, shapes: Mapping[str, Shape]) -> Instance | None:
        """Compiles a further shape-polymorphic program, optimised for these shapes; None if that is
        not possible.
        """
        programs = self._programs
        if programs is None or len(self._generic) == MOST_GENERIC:
            return None
        program = on_live_threads(programs.generic)(shapes)
        if program is None:
            return None
        self._generic.append(self._loaded(lambda: program))
        return self._generic[-1]

    def _fixed_for(self, arrays: Sequence[Array]) -> Instance:
        named = {info.name: array for info, array in zip(self.inputs, arrays, strict=True)}
        shapes = {name: array.shape for name, array in named.items()}

        def key() -> _Key:  # compiling may find that more values matter
            values = () if self._programs is None else self._programs.value_inputs
            return tuple(shapes.values()), tuple(named[name].tobytes() for name in values)

        def make() -> tuple[_Key, Instance]:
            instance = self._loaded(lambda: self._compiler(shapes).program(shapes, named))
            return key(), instance

        return self._fixed.get(key, make)

    def _fixed_of_shapes(self, shapes: Mapping[str, Shape]) -> Instance:
        key = (tuple(shapes.values()), ())

        def make() -> tuple[_Key, Instance]:
            return key, self._loaded(lambda: self._compiler(shapes).program(shapes))

        return self._fixed.get(lambda: key, make)

    def _compiler(self, shapes: Mapping[str, Shape]) -> Programs:
        return self._programs or self._refuse(shapes)

    def _refuse(self, shapes: Mapping[str, Shape]) -> NoReturn:
        program = self._leaf.programs[-1]
        assert program.sizes is not None
        sizes = program.sizes.of(program.inputs, list(shapes.values()))
        found = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        raise InvalidInputError(
            f"the file has no program for {found}; it was compiled for"
            f" {', '.join(program.sizes.conditions)}; export the model for these shapes"
        )

    def _loaded(self, compiled: Callable[[], Program]) -> Instance:
        return on_live_threads(lambda: instance_of(compiled(), self._limits, load=self._load))()

    def _named(self, shapes: _Shapes) -> dict[str, Shape]:
        return {info.name: shape for info, shape in zip(self.inputs, shapes, strict=True)}


def _call(instance: Instance, shapes: _Shapes) -> _Found:
    """Returns the program and its call for inputs of these shapes; None if the program does not
    accept them.
    """
    program = instance.program
    assert program.sizes is not None
    sizes = program.sizes.of(program.inputs, shapes)
    return (instance, instance.call(sizes)) if program.sizes.accept(sizes) else None


def _would_be_same(program: Program, shapes: _Shapes) -> bool:
    assert program.sizes is not None
    return program.sizes.decide_alike(program.sizes.of(program.inputs, shapes))


def usual_shape(info: TensorInfo) -> Shape:
    """Returns the shape of an input for which code is optimised by default; symbolic sizes become a
    usual number.
    """
    return tuple(size if isinstance(size, int) else _USUAL_SIZE for size in info.shape)
