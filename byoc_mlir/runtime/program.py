"""Program: object code and all that it refers to, as the compiler passes it to the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from byoc_mlir.abi import DEVICE_FUNCTIONS, device_region
from byoc_mlir.runtime.report import Report
from byoc_mlir.runtime.symbolic_sizes import SymbolicSizes
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.tensors import Array, TensorInfo


@dataclass(frozen=True)
class IsaSwitch:
    """Function that limits the instruction set of a shared object that generates code itself."""

    function: str
    """Name of the function, which takes the highest instruction set as an int, before other
    calls."""
    values: tuple[tuple[str, int], ...]
    """Value for each level of `isa.LEVELS`."""
    environment: tuple[str, ...]
    """Environment variables with which users set the limit themselves; they take precedence."""


@dataclass(frozen=True)
class SharedLibrary:
    """Shared object of the machine that defines functions which the object code calls."""

    path: Path
    """Path on this machine; the dynamic loader finds a bare name."""
    environment: str = ""
    """Environment variable that overrides the path, if there is one."""
    version_function: str = ""
    """Function without parameters that returns a pointer to three ints: major, minor, patch."""
    version: tuple[int, int, int] = (0, 0, 0)
    """Version at compile time: an older one, or another major one, is not accepted."""
    isa_switch: IsaSwitch | None = None
    wheels: tuple[str, ...] = ()
    """Distributions that may have it on another machine."""


@dataclass(frozen=True)
class LibrarySymbol:
    """Function of a shared object that the object code calls under the name `symbol`.

    The library is part of a region, and is stored with the program; `bytes` stand for its stored
    content.
    """

    symbol: str
    library: Path | bytes
    name: str

    def image(self) -> bytes:
        """Returns the shared object's content."""
        return self.library if isinstance(self.library, bytes) else self.library.read_bytes()


@dataclass(frozen=True)
class ProgramDevice:
    """Device that a program runs regions on."""

    name: str
    plugin: str
    """Class that knows why a machine has no such device, `package.module:Class`."""
    identity: str
    """Device, driver and firmware for which the program was compiled."""
    library: SharedLibrary
    """Shared object with the device's functions, or with those that they call."""
    regions: tuple[str, ...]
    """Symbols of its regions."""
    state: int
    """First of the state slots: addresses of the constants; for each, 1 if the program owns it; the
    addresses of the device's functions; the status of the last allocation."""
    constants: tuple[str, ...]
    """Digests of the constants on the device, in the order of their slots."""
    constant_bytes: int
    arena_bytes: int
    """Size of the arena on the device; each context has one."""
    dlpack_type: int
    """Number of the device's type in DLPack."""

    @property
    def region(self) -> str:
        """Returns the prefix of the device's hooks, which names it in statuses."""
        return device_region(self.name)

    def address_slot(self, index: int) -> int:
        """Returns the state slot with the address of a constant."""
        return self.state + index

    def owner_slot(self, index: int) -> int:
        """Returns the state slot that is 1 if the program frees a constant."""
        return self.state + len(self.constants) + index

    def function_slot(self, name: str) -> int:
        """Returns the state slot with the address of one of the device's functions."""
        return self.state + 2 * len(self.constants) + DEVICE_FUNCTIONS.index(name)

    @property
    def allocation_slot(self) -> int:
        """Returns the state slot with the status of the last allocation."""
        return self.state + 2 * len(self.constants) + len(DEVICE_FUNCTIONS)


@dataclass(frozen=True)
class PythonRegion:
    """Region that Python code runs: `loader` names the `RegionModule` that loads `data`.

    The object code calls it under the name `symbol`; `region` is the name of its function.
    """

    symbol: str
    region: str
    loader: str
    data: bytes
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


@dataclass(frozen=True)
class Step:
    """Timed part of a run, in a program that was compiled for profiles."""

    nodes: tuple[str, ...]
    """ONNX nodes that it computes; empty if it belongs to all of them."""
    region: str
    """Symbol of its region; empty on the host."""
    implementation: str
    """Function of the host, or the backend's name of its code."""
    layout: str = ""
    multiplications: int = 0
    bytes: int = 0
    """Bytes read from other steps, inputs and weights, and written for other steps; the size of a
    copy."""
    device: str = ""
    """Device, if the step copies, waits, or enqueues a region; `implementation` is then the region,
    or a description."""


@dataclass(frozen=True)
class ValueCheck:
    """Check that ends a run if a value is not between `least` and `most`."""

    node: str
    """ONNX node that requires it."""
    what: str
    least: int
    most: int


class LoadedCode(Protocol):
    """Code in the process, ready to be called."""

    def address(self, entry_point: str) -> int:
        """Returns the address of an entry point such as `byoc_load` or `byoc_run`."""
        ...

    def close(self) -> None:
        """Frees the code. No call may use it afterwards."""
        ...


class Code(Protocol):
    """Native code with its weights, in one of its storage formats."""

    @property
    def size(self) -> int:
        """Returns the bytes of the code, with the weights if both are one file."""
        ...

    def load(self, symbols: Mapping[str, int], threads: int) -> LoadedCode:
        """Loads the code into the process.

        Args:
            symbols: addresses of the functions that it calls.
            threads: OpenMP threads of a run.

        Raises:
            ExecutionError: a symbol is missing.
        """
        ...


@dataclass(frozen=True)
class ObjectCode:
    """Relocatable object files with separate weights."""

    data: bytes
    weights: Mapping[str, Array]
    """Weights by external symbol, which is the address of the array's first byte."""
    kernels: tuple[bytes, ...] = ()
    """Other object files, with functions that the first one calls."""

    @property
    def files(self) -> tuple[bytes, ...]:
        """Returns all object files."""
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
    """Processor that the code was generated for."""
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    externals: tuple[str, ...]
    """Functions that the object code calls and that `libraries` or the process define."""
    libraries: tuple[SharedLibrary, ...]
    library_symbols: tuple[LibrarySymbol, ...]
    python_regions: tuple[PythonRegion, ...]
    regions: tuple[str, ...]
    """Symbols of the regions, then of the devices, in the order of their numbers in statuses."""
    state_slots: int
    context_slots: int
    arena_bytes: int
    """Size of the arena; with symbolic sizes, for the sizes that code is optimised for."""
    threads: int
    """OpenMP threads of a run."""
    report: Report
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """Text that a backend generated, by region."""
    steps: tuple[Step, ...] = ()
    """Timed steps. A context's last slots are the clock's: one for the time of each step, and one
    for that of its other threads."""
    checks: tuple[ValueCheck, ...] = ()
    """Checks in the order of their numbers, from 1, which are the host's statuses."""
    devices: tuple[ProgramDevice, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Input whose memory an output may share, from its first byte on, by output. The input is
    overwritten then; no other output may share memory with an input."""
    sizes: SymbolicSizes | None = None
    """Sizes that the code takes as arguments; `None` if all sizes are compiled in."""
