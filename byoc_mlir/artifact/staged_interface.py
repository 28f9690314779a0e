"""C interface of a model that is split into segments: sizes and tensors with C identifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from byoc_mlir.artifact.interface import c_type
from byoc_mlir.artifact.names import unique_identifiers
from byoc_mlir.tensors import TensorInfo


@dataclass(frozen=True)
class StagedInterface:
    """C interface of a model that is split into segments."""

    sizes: Mapping[str, str]
    """C name of each symbol of the inputs."""
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    """Outputs, whose sizes are unknown."""
    names: tuple[str, ...]
    """C names of the inputs, then of the outputs, then of the shapes of the outputs."""

    @staticmethod
    def of(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> StagedInterface:
        """Returns the interface of a model."""
        symbols = symbols_of(inputs)
        tensors = [info.name for info in (*inputs, *outputs)]
        shapes = [f"{info.name}_shape" for info in outputs]
        names = unique_identifiers([*symbols, *tensors, *shapes])
        sizes = dict(zip(symbols, names, strict=False))
        return StagedInterface(sizes, tuple(inputs), tuple(outputs), tuple(names[len(sizes) :]))

    @property
    def input_names(self) -> Sequence[str]:
        """Returns the C names of the inputs."""
        return self.names[: len(self.inputs)]

    @property
    def output_names(self) -> Sequence[str]:
        """Returns the C names of the outputs."""
        return self.names[len(self.inputs) :][: len(self.outputs)]

    @property
    def shape_names(self) -> Sequence[str]:
        """Returns the C names of the output shapes."""
        return self.names[len(self.inputs) + len(self.outputs) :]

    @property
    def declared(self) -> list[str]:
        """Returns the parameters of `run` as C declarations, for the header."""
        return self._declared(
            list(self.sizes.values()), self.input_names, self.output_names, self.shape_names
        )

    @property
    def parameters(self) -> dict[str, int | str]:
        """Returns the macros for the parameters of `run`, for `stages.c`."""
        sizes = _numbered("size", len(self.sizes))
        inputs = _numbered("input", len(self.inputs))
        outputs = _numbered("output", len(self.outputs))
        shapes = _numbered("shape", len(self.outputs))
        return {
            "INPUT_COUNT": len(inputs),
            "OUTPUT_COUNT": len(outputs),
            "MODEL_SIZE_COUNT": len(sizes),
            "SIZES": ", ".join(sizes) or "0",
            "RUN_PARAMETERS": ", ".join(self._declared(sizes, inputs, outputs, shapes)) or "void",
            "RUN_INPUTS": ", ".join(inputs) or "NULL",
            "RUN_OUTPUTS": ", ".join(outputs) or "NULL",
            "RUN_SHAPES": ", ".join(shapes) or "NULL",
        }

    def _declared(
        self,
        sizes: Sequence[str],
        inputs: Sequence[str],
        outputs: Sequence[str],
        shapes: Sequence[str],
    ) -> list[str]:
        given = zip(self.outputs, outputs, shapes, strict=True)
        return [
            *(f"int64_t {size}" for size in sizes),
            *(
                f"const {c_type(info.dtype)} *{name}"
                for info, name in zip(self.inputs, inputs, strict=True)
            ),
            *(f"{c_type(info.dtype)} **{name}, int64_t *{shape}" for info, name, shape in given),
        ]


def symbols_of(inputs: Sequence[TensorInfo]) -> list[str]:
    """Returns the names of symbolic sizes, in order."""
    sizes = [size for info in inputs for size in info.shape if not isinstance(size, int)]
    return list(dict.fromkeys(sizes))


def _numbered(kind: str, count: int) -> list[str]:
    return [f"{kind}_{number}" for number in range(count)]
