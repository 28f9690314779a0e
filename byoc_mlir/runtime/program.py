"""What the compiler hands to the runtime: object code and everything it refers to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from byoc_mlir.runtime.report import Report
from byoc_mlir.runtime.symbolic_sizes import SymbolicSizes
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.tensors import Array, TensorInfo


@dataclass(frozen=True)
class IsaSwitch:
    """How a shared object that generates code itself is told which instructions it may use."""

    function: str
    """Takes the highest instruction set as an int, before anything else is called."""
    values: tuple[tuple[str, int], ...]
    """What it takes for each level of `isa.LEVELS`."""
    environment: tuple[str, ...]
    """Environment variables by which users tell it themselves; they win."""


@dataclass(frozen=True)
class SharedLibrary:
    """A shared object of the machine, which defines functions that the object code calls."""

    path: Path
    """Where it is on this machine; a bare name is found by the dynamic loader."""
    environment: str = ""
    """The environment variable that names another file, if there is one."""
    version_function: str = ""
    """A function without parameters that gives a pointer to three ints: major, minor, patch."""
    version: tuple[int, int, int] = (0, 0, 0)
    """What it gave when the model was compiled: an older one, or another major one, will not do."""
    isa_switch: IsaSwitch | None = None


@dataclass(frozen=True)
class LibrarySymbol:
    """A function of a shared object that the object code calls under the name `symbol`.

    The library is the region's own and travels with the program; as bytes, it already did.
    """

    symbol: str
    library: Path | bytes
    name: str

    def image(self) -> bytes:
        """The shared object's content."""
        return self.library if isinstance(self.library, bytes) else self.library.read_bytes()


@dataclass(frozen=True)
class PythonRegion:
    """A region that Python code runs: `loader` names the `RegionModule` that `data` makes.

    `symbol` is the name under which the object code calls it, `region` that of the function.
    """

    symbol: str
    region: str
    loader: str
    data: bytes
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


@dataclass(frozen=True)
class Step:
    """A part of a run that is timed, in a program that was compiled for profiles."""

    nodes: tuple[str, ...]
    """The ONNX nodes that it computes; none where it serves them all."""
    region: str
    """The symbol of the region that it is in; empty on the host."""
    implementation: str
    """The function of the host that it is, or what the region's backend calls it."""
    layout: str = ""
    multiplications: int = 0
    bytes: int = 0
    """Read from other steps, inputs and weights, and written for others."""


@dataclass(frozen=True)
class ValueCheck:
    """A number that ends a run where it is not one of `least` to `most`."""

    node: str
    """The ONNX node that asks."""
    what: str
    least: int
    most: int


class LoadedCode(Protocol):
    """Code in the process, ready to be called."""

    def address(self, entry_point: str) -> int:
        """The address of `byoc_load`, `byoc_run` and so on."""
        ...

    def close(self) -> None:
        """Frees the code. Nothing may call into it from here on."""
        ...


class Code(Protocol):
    """Native code with its weights, in one of the forms in which it is kept."""

    @property
    def size(self) -> int:
        """The bytes of the code, with the weights where both are one file."""
        ...

    def load(self, symbols: Mapping[str, int], threads: int) -> LoadedCode:
        """Brings it into the process.

        Args:
            symbols: the addresses of the functions that it calls.
            threads: OpenMP threads of a run.

        Raises:
            ExecutionError: a symbol is missing.
        """
        ...


@dataclass(frozen=True)
class ObjectCode:
    """Relocatable object files, and the weights beside them."""

    data: bytes
    weights: Mapping[str, Array]
    """External symbol to the array whose first byte it is."""
    kernels: tuple[bytes, ...] = ()
    """Other object files, which have functions that the others call."""

    @property
    def files(self) -> tuple[bytes, ...]:
        """All object files."""
        return self.data, *self.kernels

    @property
    def size(self) -> int:
        return sum(map(len, self.files))

    def load(self, symbols: Mapping[str, int], threads: int) -> LoadedCode:
        from byoc_mlir.runtime.linking.native_module import link  # an artifact does without

        return link(self, symbols, threads)


@dataclass(frozen=True)
class Program:
    """Native code of a model, for one set of input shapes or for all that its `sizes` accept.

    See docs/dev-notes/architecture.md, "Native code".
    """

    code: Code
    cpu: Cpu
    """What the code was generated for."""
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    externals: tuple[str, ...]
    """Functions that the object code calls and `libraries` or the process define."""
    libraries: tuple[SharedLibrary, ...]
    library_symbols: tuple[LibrarySymbol, ...]
    python_regions: tuple[PythonRegion, ...]
    regions: tuple[str, ...]
    """The regions' symbols, in the order of the numbers that statuses carry."""
    state_slots: int
    context_slots: int
    arena_bytes: int
    """With symbolic sizes: for the sizes that choices were made for."""
    threads: int
    """OpenMP threads of a run."""
    report: Report
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """By region: the text that its backend generated, if it generated text."""
    steps: tuple[Step, ...] = ()
    """What is timed. A context's last slots are the clock's, one for the time of each step, and one
    for that of its other threads."""
    checks: tuple[ValueCheck, ...] = ()
    """In the order of their numbers, from 1, which are the host's statuses."""
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of outputs: the input that they may be in the memory of, from its first byte on. It is lost
    then; of any other output, and any other input, nothing is."""
    sizes: SymbolicSizes | None = None
    """What the code takes as arguments; `None` where all sizes are compiled in."""
