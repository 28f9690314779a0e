"""Contract between the compiler and a backend.

A backend declares the ops that it can run (`op_rules`, `patterns`), and generates code for a region
(`codegen`). Rules and checks are pure functions of the IR; code generation may use the machine.
Steps of a compilation, in order:

1. `module_passes` of each target, on the whole module;
2. `patterns` and `op_rules`: the module is partitioned;
3. `region_passes`, on copies of the backend's regions;
4. `codegen_regions`, by default `codegen` for one region after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Dialect, Operation
from xdsl.passes import ModulePass

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.backends.options import Option, Setting
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.locks import cached_property
from byoc_mlir.patterns import CompositePattern
from byoc_mlir.runtime.module import RegionModule
from byoc_mlir.runtime.program import Array, SharedLibrary

if TYPE_CHECKING:
    from onnx import ModelProto

API_VERSION = 2
"""Version of the contract. Version 2 added devices; backends of version 1 are still accepted."""

Rule: TypeAlias = Callable[[Operation], str | None]
"""`None` accepts the op; a string is the reason why the backend refuses it."""


@dataclass(frozen=True)
class CodegenContext:
    """Settings of the compilation that a code generator may need besides the region itself."""

    threads: int
    """OpenMP threads that `run` will use, at least 1."""


@dataclass(frozen=True)
class OpDetail:
    """One primitive of the generated code, as the report lists it."""

    nodes: tuple[str, ...]
    """ONNX nodes that the primitive computes."""
    implementation: str
    """Name of the implementation that the library chose, such as `jit:avx2`."""
    milliseconds: float | None = None
    """Milliseconds measured at compile time, if they were measured."""
    note: str = ""
    """A remark for the report, such as a layout, an algorithm or a problem."""
    is_warning: bool = False
    """True if the compiler warns the user with the note."""


@dataclass(frozen=True)
class NativeCode:
    """Functions in the `llvm` dialect; `@R` stands for the region's symbol.

    ```
    i32  @R       (state, context, input_0, …, output_0, …)   run; required
    i32  @R_load  (state)                  once: create what all contexts share
    i32  @R_open  (state, context, workspace)   once per context; the workspace stays there
    void @R_close (state, context)
    void @R_unload(state)
    ```

    All parameters are `!llvm.ptr`. `state` and `context` point at the region's own slots (8 bytes
    each, zero at first). 0 means success, any other value is a status for the error message. A hook
    that fails frees what it has made; the hooks of regions before it are undone. Tensors are dense,
    row-major, and do not overlap. A constant is the address of the external global
    `weight_symbol(digest)`; list its handle in `constants` (`ConstantOp.weight`).

    On a device (`Backend.memory_space`), the region enqueues its work and returns:

    ```
    i32  @R_start(state, context, queue, constant_0, …, input_0, …, output_0, …)
    ```

    instead of `@R`. All addresses but `state` and `context` are the device's; `workspace` too. The
    compiler uploads `constants`, once per process, and passes their addresses in this order.
    """

    module: ModuleOp
    state_slots: int = 0
    context_slots: int = 0
    workspace_bytes: int = 0
    """Memory in the arena that is free for the region during a run, 64-byte aligned."""
    constants: tuple[Weight, ...] = ()
    """Every constant whose symbol the code uses. A constant that is not listed by any region, nor
    used by the host, is freed: a backend that packs one lists `Weight.of(name, packed)` instead."""
    libraries: tuple[Path | SharedLibrary, ...] = ()
    """Shared objects that define the symbols the code calls; a `SharedLibrary` has its version
    checked where the compiled model is loaded."""
    details: tuple[OpDetail, ...] = ()
    shared: ModuleOp | None = None
    """Functions and globals of linkage `internal` that other regions use too: several may give the
    same module, or modules that define the same symbols alike."""


@dataclass(frozen=True)
class CSource:
    """C source that defines `int R(const T *input_0, …, T *output_0, …)` for region symbol `R`.

    It returns 0, or a status for the error message. Constants come first among the inputs.
    Compiling needs a C compiler (`$CC` or `cc`) where the model is compiled. Regions with the same
    source and flags share one library.

    On a device, the function is `int R(void *queue, const T *constant_0, …, T *output_0, …)`: it
    enqueues work on addresses of the device, and returns.
    """

    source: str
    flags: tuple[str, ...] = ("-O2",)
    libraries: tuple[Path | SharedLibrary, ...] = ()
    """Shared objects that define the functions the source calls, as in `NativeCode`."""
    constants: tuple[Weight, ...] | None = None
    """Arrays to pass as constants, such as `Weight.of(name, packed)`. By default, the compiler
    passes each `relay.constant` of the region's body in order. It frees constants that are not
    listed.
    """
    details: tuple[OpDetail, ...] = ()


@dataclass(frozen=True)
class Blob:
    """Opaque bytes, and the class that makes them callable.

    `loader` names a `RegionModule`, `"package.module:Class"`; its `load` gets the bytes where the
    program is loaded. Regions with the same loader and bytes share one module. Blobs run on the
    host's memory only.
    """

    data: bytes
    loader: str
    source: str = ""
    """Text that users may read (`Executable.get_source`), or ""."""
    details: tuple[OpDetail, ...] = ()

    @staticmethod
    def of(module: RegionModule, details: Sequence[OpDetail] = ()) -> Blob:
        """Returns the blob of `module.save()` with the module's class as loader."""
        kind = type(module)
        loader = f"{kind.__module__}:{kind.__qualname__}"
        return Blob(module.save(), loader, module.get_source(), tuple(details))


GeneratedCode: TypeAlias = NativeCode | CSource | Blob


@dataclass(frozen=True)
class Profitability:
    """Ops that a backend computes faster in a reduced precision than in `f32`."""

    ops: frozenset[str] = frozenset()
    """Relay names of convolutions and matmuls (`nn.conv2d`). Their operands may be of the reduced
    type, and their results of either type. In a composite with functions of the result, all other
    values are `f32`; `to-mixed-precision` shows both.
    """
    reason: str = "it computes nothing faster in that type"
    """Reason why `ops` is empty."""
    least: int = 0
    """Minimum number of MACs for which this precision pays."""
    faster_in_f32: Rule = lambda op: None
    """Rule that returns why an op, or the composite around it, is faster in `f32`, or `None`.
    The compiler applies it before it changes the model, while all values are `f32`.
    """
    following: frozenset[str] = frozenset()
    """Composites without a matmul or convolution that may read and write the reduced type. Their
    constants and inner values are `f32`.
    """


class Backend(ABC):
    """A backend; one instance serves one compilation.

    ```python
    class Npu(Backend):
        name = "npu"

        def op_rules(self):
            return {"nn.relu": lambda op: None}

        def codegen(self, region, context):
            return CSource(...)
    ```
    """

    name: ClassVar[str]
    """Target name, and the prefix of composite names: `dnnl` in `dnnl.conv2d_relu`."""

    api_version: ClassVar[int] = API_VERSION

    memory_space: ClassVar[str] = HOST_SPACE
    """Memory of the regions' tensors: the host's, or the name of a `Device`. The compiler copies
    values between spaces, and waits. Backends with the same device pass values without a copy.
    """

    used_by_default: ClassVar[bool] = False
    """True if models are compiled for it when no targets are named."""

    priority: ClassVar[int] = 100
    """Order among the backends used by default. Each op goes to the backend with the highest
    priority that accepts it; equal priorities are ordered by name. `dnnl` has 0, so a device comes
    before the CPU.
    """

    is_fallback_interpreter: ClassVar[bool] = False
    """True if the backend runs any `relay.onnx_node`. Such nodes then go to it even if it is no
    named target.
    """

    runs_models: ClassVar[bool] = False
    """True if `interpreter` runs any model, so that compiled models can be compared with it."""

    is_cacheable: ClassVar[bool] = True
    """True if the same model, options, package and machine always give equally good code. Another
    process may then load that code from disk (`compile(cache=…)`).
    """

    environment: ClassVar[tuple[str, ...]] = ()
    """Environment variables that affect the backend's code."""

    quantised_ops: ClassVar[frozenset[str]] = frozenset()
    """Quantised ops that stay whole for this backend, by Relay name: `qnn.quantize`. The compiler
    replaces all others but convolutions, matmuls, pools, `qnn.add`, `qnn.lookup` and
    `qnn.requantize` by arithmetic before it partitions the model.
    """

    options: ClassVar[Mapping[str, Option]] = {}
    """Options that users may set, by name: `targets=("npu{tiles=4}",)`."""

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        """Returns the value of each option in this compilation; rules may depend on it."""
        return {name: option.default for name, option in self.options.items()}

    def unavailable(self) -> str | None:
        """Returns why this machine cannot use the backend and what to install, or `None`."""
        return None

    def describe(self) -> str:
        """Returns one line on what the backend found on this machine, for `byoc doctor`."""
        return "ready"

    def op_rules(self) -> Mapping[str, Rule]:
        """Returns the rules for single ops, keyed by Relay name (`nn.conv2d`)."""
        return {}

    def patterns(self) -> Sequence[CompositePattern]:
        """Returns the patterns of composites; the first one that matches wins."""
        return ()

    def profitability(self, element_type: str) -> Profitability:
        """Returns the ops that are faster in `element_type` (`bf16`, `f16`) on this machine.

        A model of 16-bit floats keeps its types if `f16` pays on a target; else it is computed in
        `f32`. For `bf16x3`, the ops are `f32` matmuls to be replaced by `bf16` matmuls of three
        times the depth (`split-products`). For `tf32`, `allow-tf32` marks the ops with the
        attribute `byoc.computed_in`: the backend may round their `f32` operands.
        """
        return Profitability()

    def dialects(self) -> Sequence[Dialect]:
        """Returns the backend's own dialects, which `byoc-opt` parses."""
        return ()

    def passes(self) -> Mapping[str, Callable[[], type[ModulePass]]]:
        """Returns the backend's own passes by name, which `byoc-opt` runs."""
        return {}

    def module_passes(self) -> Sequence[ModulePass]:
        """Returns passes to run on the whole module before it is partitioned.

        Other backends and the host get the result. So a pass keeps the model's semantics, the
        functions' types and the locations (`new.location = op.location`), and creates `relay` ops
        only. It works on a copy: if a pass fails, the compiler drops the copy and warns.
        """
        return ()

    def region_passes(self) -> Sequence[ModulePass]:
        """Returns passes to run on a module that holds a copy of each of this backend's regions.

        They may convert the bodies to any dialect, and keep the functions' names and types. If they
        fail for a region, its original goes to the next target or to the host.
        """
        return ()

    @abstractmethod
    def codegen(self, region: FuncOp, context: CodegenContext) -> GeneratedCode:
        """Generates code for one outlined region, `func.func private @R(tensors) -> tensors`.

        The body holds `relay` ops and `byoc.composite`s of this backend, or the result of
        `region_passes`. The backend must neither keep nor change it. If it raises an exception, the
        region goes to the next target or to the host, and the report shows the exception's text.
        """

    def estimated_milliseconds(self, region: FuncOp, context: CodegenContext) -> float | None:
        """Estimates the latency of an outlined region on one thread; `None` if it is unknown.

        The compiler compares it with an estimate for the host that is mostly within 20 %. Return
        `None` rather than a less accurate number. The compiler calls this before `region_passes`,
        and only if the user names no targets. The backend may keep its findings for `codegen`.
        """
        return None

    def faster_on_host(self, region: FuncOp) -> str | None:
        """Returns why the host runs an outlined region faster, or `None`.

        The compiler calls this only if the user names no targets, because a named backend always
        gets its regions. It asks about regions that are too large to measure and have close or
        unknown estimates.
        """
        return None

    def interpreter(self, model: ModelProto) -> Callable[[Mapping[str, Array]], Sequence[Array]]:
        """Returns a callable that runs a whole model without compiling it, if the backend has one.

        A fallback interpreter runs nodes on strings, for which native code has no layout. A backend
        with `runs_models` computes the reference results of `Executable.verify`.

        Returns:
            The outputs in order, for inputs by name.
        """
        raise NotImplementedError(f"backend '{self.name}' runs no models")

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[GeneratedCode | Exception]:
        """Generates code for all regions of a model at once, in their order.

        A backend overrides it to share code or constants between regions. The result of a region
        that cannot be compiled is an exception. If the call itself raises, the compiler repeats it
        for each region, so that only the failing regions go back to the host.
        """
        return [attempt(self.codegen, region, context) for region in regions]


def attempt(
    codegen: Callable[[FuncOp, CodegenContext], GeneratedCode],
    region: FuncOp,
    context: CodegenContext,
) -> GeneratedCode | Exception:
    """Returns the code that `codegen` generates for a region, or the exception that it raises."""
    try:
        return codegen(region, context)
    except Exception as error:  # any exception of a backend is a refusal
        return error
