"""Reading and running ExampleJSON; nothing here needs the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from byoc_mlir.backends import Array, RegionFunction, RegionModule
from byoc_mlir.errors import ExecutionError


def _relu(data: Array) -> Array:
    return np.maximum(data, np.float32(0))


KERNELS: Mapping[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "relu": _relu,
}


@dataclass
class Graph:
    """One subgraph: tensors by number, and the calls in order."""

    inputs: list[int] = field(default_factory=list[int])
    constants: dict[int, Array] = field(default_factory=dict[int, Array])
    calls: list[tuple[str, int, list[int]]] = field(
        default_factory=list[tuple[str, int, list[int]]]
    )
    outputs: list[int] = field(default_factory=list[int])
    known: set[int] = field(default_factory=set[int])

    def checked(self, numbers: Iterable[int]) -> list[int]:
        """Returns the same numbers, and checks that each names a known tensor."""
        found = list(numbers)
        for number in found:
            if number not in self.known:
                raise ValueError(f"no line before it makes tensor {number}")
        return found


class ExampleJsonModule(RegionModule):
    """The subgraphs of an ExampleJSON text, by name.

    Raises:
        ExecutionError: a line cannot be read; the message gives its number.
    """

    def __init__(self, text: str):
        self._text = text
        self._graphs: dict[str, Graph] = {}
        name = ""
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                if not line.startswith((" ", "\t")):
                    name = line.strip()
                    self._graphs[name] = Graph()
                else:
                    _read(self._graphs[name], line)
            except (ValueError, KeyError, IndexError) as error:
                raise ExecutionError(
                    f"ExampleJSON, line {number}: '{line.strip()}': {error}"
                ) from error

    @classmethod
    def load(cls, data: bytes) -> Self:
        return cls(data.decode())

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Returns the module of a file, which may be written by hand."""
        return cls(Path(path).read_text())

    def save(self) -> bytes:
        return self._text.encode()

    def get_source(self) -> str:
        return self._text

    def get_function(self, symbol: str) -> RegionFunction:
        if symbol not in self._graphs:
            raise ExecutionError(f"no subgraph '{symbol}'; there are {', '.join(self._graphs)}")
        graph = self._graphs[symbol]

        def run(inputs: list[Array], outputs: list[Array]) -> None:
            values = dict(zip(graph.inputs, inputs, strict=True)) | graph.constants
            with np.errstate(all="ignore"):
                for kernel, result, operands in graph.calls:
                    values[result] = KERNELS[kernel](*(values[operand] for operand in operands))
            # Without an output line, the last call's result is the output.
            results = graph.outputs or [graph.calls[-1][1]]
            for output, result in zip(outputs, results, strict=True):
                np.copyto(output, values[result])

        return run


def _read(graph: Graph, line: str) -> None:
    keyword, number, *rest = line.split()
    result = int(number)
    if keyword == "input":
        graph.inputs.append(result)
    elif keyword == "output":
        graph.outputs += graph.checked([result])
    elif keyword == "const":
        values = rest.index("values:")
        shape = [int(size) for size in rest[rest.index("shape:") + 1 : values]]
        numbers = np.array([float(text) for text in rest[values + 1 :]], np.float32)
        graph.constants[result] = numbers.reshape(shape)
    elif keyword in KERNELS:
        operands = rest[rest.index("inputs:") + 1 : rest.index("shape:")]
        graph.calls.append((keyword, result, graph.checked(map(int, operands))))
    else:
        raise ValueError(f"there is no op '{keyword}', only {', '.join(KERNELS)}")
    graph.known.add(result)
