"""`Executable`: what `byoc_mlir.compile` returns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, cast

import numpy as np

from byoc_mlir.boundary import boundary, check_argument, translated
from byoc_mlir.errors import (
    ByocError,
    ExecutionError,
    ExportError,
    InputValuesNeededError,
    InvalidInputError,
)
from byoc_mlir.runtime.forks import ForkSafeLock, on_live_threads
from byoc_mlir.runtime.instance import Instance
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import Report
from byoc_mlir.tensors import TensorInfo

Shape: TypeAlias = tuple[int, ...]
_Key: TypeAlias = tuple[tuple[Shape, ...], tuple[bytes, ...]]
Inputs: TypeAlias = Mapping[str, Any] | Sequence[Any]

_ndarray = np.ndarray  # found faster than an attribute

CACHED_SHAPES = 16
"""How many sets of input shapes of a model with symbolic dimensions stay compiled."""


class Specialiser(Protocol):
    """Compiles a model for given input shapes, and for the values that shapes depend on."""

    @property
    def value_inputs(self) -> Sequence[str]:
        """Inputs whose values are compiled in, as far as is known yet."""
        ...

    def specialise(self, arrays: Mapping[str, Array]) -> Program:
        """The program for inputs like these."""
        ...

    def specialise_shapes(self, shapes: Mapping[str, Shape]) -> Program:
        """The program for inputs of these shapes.

        Raises:
            InputValuesNeededError: shapes inside the model depend on the values of an input.
        """
        ...


@dataclass(frozen=True)
class Compiled:
    """A specialiser for the only shapes there are."""

    program: Program

    @property
    def value_inputs(self) -> tuple[str, ...]:
        return ()

    def specialise(self, arrays: Mapping[str, Array]) -> Program:
        return self.program

    def specialise_shapes(self, shapes: Mapping[str, Shape]) -> Program:
        return self.program


class Executable:
    """A compiled model. `run` may be called from several threads at once.

    Args:
        inputs: what the model takes, in order.
        outputs: the names of what it gives, in order.
        specialiser: compiles the model. Without symbolic dimensions, and when no shape depends on
            values, that happens at once; else when the first inputs come.
    """

    def __init__(
        self,
        inputs: Sequence[TensorInfo],
        outputs: Sequence[str],
        specialiser: Specialiser,
    ):
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self._specialiser = specialiser
        self._lock = ForkSafeLock()
        self._instances: OrderedDict[_Key, Instance] = OrderedDict()
        self._closed = False
        self._static: Instance | None = None
        self._names = {info.name: index for index, info in enumerate(self.inputs)}
        if all(info.is_static for info in self.inputs):
            self._static = self._compiled_ahead()
        if self._static is not None:
            self._specialiser = Compiled(self._static.program)  # which lets go of the model

    def run(self, inputs: Inputs) -> dict[str, Array]:
        """Runs the model.

        Args:
            inputs: arrays by input name, or in the order of `self.inputs`.

        Returns:
            The outputs by name, as arrays of the caller's own.

        Raises:
            InvalidInputError: an input is missing, unknown, or has a wrong dtype or shape.
            ExecutionError: a native call failed, or the executable is closed.
            OutOfMemoryError: there is no memory for the outputs, or for the arena.
        """
        try:  # a context manager takes a tenth of a small model's time
            arrays = self._as_they_are(inputs) or self._checked(inputs)
            instance = self._static
            if instance is None:
                instance = self._instance_for(arrays)
            return dict(zip(self.outputs, instance.run(arrays)))  # noqa: B905, it takes as long
        except (ByocError, Warning):
            raise
        except Exception as error:
            raise translated(error, "run") from error

    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        """Compiles a model with symbolic dimensions for input shapes that are expected.

        Raises:
            InvalidInputError: the shapes do not fit the model's inputs.
        """
        with boundary("warmup"):
            self._warmup(shapes)

    def _warmup(self, shapes: Mapping[str, Shape]) -> None:
        accepted = "a dictionary of input names to shapes"
        check_argument("shapes", shapes, Mapping, accepted, InvalidInputError)
        missing = [info.name for info in self.inputs if info.name not in shapes]
        if missing:
            raise InvalidInputError(f"no shape is given for input(s) {', '.join(missing)}")
        ordered = {info.name: _as_shape(info, shapes[info.name]) for info in self.inputs}
        for info in self.inputs:
            _check_shape(info, ordered[info.name])
        key = (tuple(ordered.values()), ())
        self._instance(key, lambda: self._specialiser.specialise_shapes(ordered))

    def report(self) -> Report:
        """Where every ONNX node went and why, for the shapes used last.

        Raises:
            ExecutionError: the model has symbolic dimensions and was not run yet.
        """
        return self.program.report

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
            shapes: of all inputs, for a model with symbolic dimensions.
            name: prefix of the C functions; left out, it is made of the file's name.

        Returns:
            The header's path.

        Raises:
            ExportError: the model cannot be exported; the message says why.
            ToolchainError: there is no C compiler.
            InvalidInputError: the shapes do not fit the model's inputs.
        """
        from byoc_mlir.artifact.export import export_library  # needs what running does not

        with boundary("export"):
            return export_library(self._fixed(shapes), Path(path), name)

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
        from byoc_mlir.artifact.export import export_object  # needs what running does not

        with boundary("export"):
            return export_object(self._fixed(shapes), Path(path), name)

    def _fixed(self, shapes: Mapping[str, Shape] | None) -> Program:
        """The program for given shapes, which only a model with symbolic dimensions needs."""
        if shapes is None and self._static is not None:
            return self._static.program
        if shapes is None:
            raise ExportError(
                "shapes or values are compiled in when the first inputs come; to export the model,"
                f" give the shapes of {', '.join(map(str, self.inputs))} as shapes={{...}}"
            )
        try:
            self.warmup(shapes)
        except InputValuesNeededError as error:
            raise ExportError(
                "shapes in the model depend on the values of the inputs"
                f" {', '.join(error.inputs)}, so it cannot be exported"
            ) from error
        return self.program

    @property
    def program(self) -> Program:
        """The compiled program for the shapes used last."""
        if not self._instances:
            raise ExecutionError(
                "nothing is compiled yet: the model has symbolic dimensions; call run or warmup"
            )
        return next(reversed(self._instances.values())).program

    @property
    def threads(self) -> int:
        """OpenMP threads that a run uses."""
        return self.program.threads

    def close(self) -> None:
        """Frees all native memory; nothing may be running. The executable is of no use then."""
        with self._lock:
            self._closed = True
            for instance in self._instances.values():
                instance.close()
            self._static = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickle keeps: the compiled program; or, where the first inputs decide what is
        compiled, the model."""
        if self._closed:
            raise ExecutionError("the executable is closed; pickle it before, or compile again")
        if self._static is None:
            return Executable, (self.inputs, self.outputs, self._specialiser)
        from byoc_mlir.runtime.pickled import reduced  # which loads executables

        return reduced(self._static.program)

    def __repr__(self) -> str:
        return f"<Executable ({', '.join(map(str, self.inputs))}) -> ({', '.join(self.outputs)})>"

    def _compiled_ahead(self) -> Instance | None:
        shapes = {info.name: tuple(map(int, info.shape)) for info in self.inputs}
        key = (tuple(shapes.values()), ())
        try:
            return self._instance(key, lambda: self._specialiser.specialise_shapes(shapes))
        except InputValuesNeededError:
            return None  # it is compiled when the values come

    def _instance_for(self, arrays: Sequence[Array]) -> Instance:
        named = {info.name: array for info, array in zip(self.inputs, arrays, strict=True)}
        return self._instance(self._key(named), lambda: self._specialiser.specialise(named), named)

    def _key(self, arrays: Mapping[str, Array]) -> _Key:
        values = tuple(arrays[name].tobytes() for name in self._specialiser.value_inputs)
        return tuple(array.shape for array in arrays.values()), values

    def _instance(
        self,
        key: _Key,
        specialise: Callable[[], Program],
        arrays: Mapping[str, Array] | None = None,
    ) -> Instance:
        with self._lock:
            if self._closed:
                raise ExecutionError("the executable is closed; compile the model again")
            if key in self._instances:
                self._instances.move_to_end(key)
                return self._instances[key]
            instance = on_live_threads(lambda: Instance(specialise()))()
            if arrays is not None:
                key = self._key(arrays)  # compiling may have found that more values matter
            self._instances[key] = instance
            if len(self._instances) > CACHED_SHAPES:
                # A call may still be using it: it is freed when the last reference goes.
                self._instances.popitem(last=False)
            return instance

    def _as_they_are(self, inputs: Inputs) -> list[Array] | None:
        """The inputs in order; `None` if there is something to convert or to complain of."""
        if type(inputs) is not dict or len(inputs) != len(self.inputs):
            return None
        arrays: list[Array] = []
        for info in self.inputs:  # written out: the checks of one array take as long as a call
            array = inputs.get(info.name)
            if (
                type(array) is not _ndarray
                or array.dtype is not info.dtype
                or array.shape != info.shape
                or not array.flags.c_contiguous
            ):
                return None
            arrays.append(array)
        return arrays

    def _checked(self, inputs: Inputs) -> list[Array]:
        if isinstance(inputs, Mapping):
            if inputs.keys() != self._names.keys():
                raise InvalidInputError(self._name_mismatch(inputs))
            values = [inputs[name] for name in self._names]
        else:
            values = as_list(inputs)
            if len(values) != len(self.inputs):
                raise InvalidInputError(
                    f"the model takes {len(self.inputs)} inputs"
                    f" ({', '.join(self._names)}), found {len(values)}"
                )
        return list(map(_checked_array, self.inputs, values))

    def _name_mismatch(self, inputs: Mapping[str, Any]) -> str:
        unknown = [str(name) for name in inputs if name not in self._names]
        missing = [name for name in self._names if name not in inputs]
        parts = [f"unknown input(s) {', '.join(unknown)}"] if unknown else []
        parts += [f"missing input(s) {', '.join(missing)}"] if missing else []
        return f"{'; '.join(parts)}; the model takes {', '.join(map(str, self.inputs)) or 'none'}"


def as_list(inputs: Any) -> list[Any]:
    """The inputs that are given in order."""
    if isinstance(inputs, Sequence) and not isinstance(inputs, str | bytes):
        return list(cast(Sequence[Any], inputs))
    raise InvalidInputError(
        "inputs must be a dictionary of arrays by name, or a sequence of arrays, found"
        f" {type(inputs).__name__}"
    )


def _as_shape(info: TensorInfo, sizes: Any) -> Shape:
    """What a caller gives as a shape."""
    shape = tuple(sizes) if isinstance(sizes, Sequence) else (sizes,)
    if not all(isinstance(size, int | np.integer) and size >= 0 for size in shape):
        raise InvalidInputError(
            f"the shape given for input '{info.name}' is {sizes!r}, accepted are whole numbers of 0"
            " and more"
        )
    return tuple(map(int, shape))


def _checked_array(info: TensorInfo, value: Any) -> Array:
    array = value if isinstance(value, np.ndarray) else _as_array(info, value)
    if array.dtype != info.dtype:
        raise InvalidInputError(
            f"input '{info.name}' must be of {info.dtype}, found {array.dtype};"
            f" convert it with .astype({str(info.dtype)!r})"
        )
    _check_shape(info, array.shape)
    if not array.flags.c_contiguous or not array.dtype.isnative:
        return np.ascontiguousarray(array, info.dtype).reshape(array.shape)
    return array


def _as_array(info: TensorInfo, value: Any) -> Array:
    try:
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        return np.asarray(value, info.dtype)
    except MemoryError:
        raise
    except Exception as error:  # the caller's class makes the array, and raises what it likes
        raise InvalidInputError(
            f"input '{info.name}' must be an array of {info}; the {type(value).__name__} that was"
            f" found makes none: {error}"
        ) from error


def _check_shape(info: TensorInfo, shape: Shape) -> None:
    if shape == info.shape:
        return
    fits = len(shape) == len(info.shape) and all(
        isinstance(expected, str) or expected == size
        for expected, size in zip(info.shape, shape, strict=True)
    )
    if not fits:
        raise InvalidInputError(
            f"input '{info.name}' must have shape [{', '.join(map(str, info.shape))}],"
            f" found {list(shape)}"
        )
