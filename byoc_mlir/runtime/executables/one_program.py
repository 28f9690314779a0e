"""The executable of a program that takes sizes, without what could compile others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from byoc_mlir.dims import Size
from byoc_mlir.errors import ExportError, InvalidInputError
from byoc_mlir.limits import DEFAULT_LIMITS
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.executables.sized import SizedProgram
from byoc_mlir.runtime.executables.sized_executable import SizedExecutable
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.tensors import TensorInfo


def sized_executable(sized: SizedProgram) -> Executable:
    """The executable of a program that takes sizes."""
    inputs = [
        TensorInfo(spec.name, spec.dtype, tuple(map(_named, sizes)))
        for spec, sizes in zip(sized.program.inputs, sized.inputs, strict=True)
    ]
    outputs = [spec.name for spec in sized.program.outputs]
    others, kept_bytes = _NoOthers(sized), DEFAULT_LIMITS.kept_bytes
    return SizedExecutable(inputs, outputs, others, None, kept_bytes, known=(sized,))


def _named(size: Size) -> int | str:
    return size if isinstance(size, int) else str(size)


class _NoOthers:
    """In the place of a compiler: it refuses sizes that the program is not right for."""

    def __init__(self, sized: SizedProgram):
        self._sized = sized

    @property
    def value_inputs(self) -> tuple[str, ...]:
        return ()

    def generalise(self, shapes: Mapping[str, Shape]) -> SizedProgram | None:
        """No other program."""
        return None

    def specialise(self, arrays: Mapping[str, Array]) -> Program:
        """Refuses the sizes of inputs."""
        self._refuse({name: array.shape for name, array in arrays.items()})

    def specialise_shapes(self, shapes: Mapping[str, Shape]) -> Program:
        """Refuses sizes."""
        self._refuse(shapes)

    def _refuse(self, shapes: Mapping[str, Shape]) -> NoReturn:
        sized = self._sized
        sizes = sized.sizes([shapes[spec.name] for spec in sized.program.inputs])
        found = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        raise InvalidInputError(
            f"the file has no program for {found}; it was compiled for"
            f" {', '.join(sized.conditions)}; export the model for these shapes"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        raise ExportError("a model that was loaded is not pickled; load its file in each process")
