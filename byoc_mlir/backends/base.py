"""The contract between the compiler and a backend.

A backend says what it can run (`op_rules`, `patterns`) and turns a region into code (`codegen`).
Rules and checks are pure functions of the IR; code generation may use the machine. What happens
to a model, in order:

1. `module_passes` of each target, on the whole module;
2. `patterns` and `op_rules`: the module is partitioned;
3. `region_passes`, on copies of the backend's regions;
4. `codegen_regions`, by default `codegen` for one region after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Dialect, Operation
from xdsl.passes import ModulePass

from byoc_mlir.backends.options import Option, Setting
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.patterns import CompositePattern
from byoc_mlir.runtime.module import RegionModule
from byoc_mlir.runtime.program import Array, SharedLibrary

if TYPE_CHECKING:
    from onnx import ModelProto

API_VERSION = 1
"""Raised when the contract changes in a way that breaks existing backends."""

Rule: TypeAlias = Callable[[Operation], str | None]
"""`None` accepts the op; a string is the reason why the backend refuses it."""


@dataclass(frozen=True)
class CodegenContext:
    """What a code generator may want to know beside the region itself."""

    threads: int
    """OpenMP threads that `run` will use, at least 1."""


@dataclass(frozen=True)
class OpDetail:
    """One primitive of generated code, for the report."""

    nodes: tuple[str, ...]
    """The ONNX nodes that it computes."""
    implementation: str
    """How the library calls what it chose, `jit:avx2`."""
    milliseconds: float | None = None
    """Measured at compile time, if it was."""
    note: str = ""
    """A layout, an algorithm, what is wrong with it."""
    is_warning: bool = False
    """Whether the user should be told of the note."""


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
    """

    source: str
    flags: tuple[str, ...] = ("-O2",)
    libraries: tuple[Path | SharedLibrary, ...] = ()
    """Shared objects that define the functions the source calls, as in `NativeCode`."""
    constants: tuple[Weight, ...] | None = None
    """What to pass as constants, where that is not each `relay.constant` of the region's body in
    order: packed ones, `Weight.of(name, array)`. Those that are not passed are freed."""
    details: tuple[OpDetail, ...] = ()


@dataclass(frozen=True)
class Blob:
    """Opaque bytes, and the class that makes them callable.

    `loader` names a `RegionModule`, `"package.module:Class"`; its `load` gets the bytes where the
    program is loaded. Regions with the same loader and bytes share one module.
    """

    data: bytes
    loader: str
    source: str = ""
    """The text that users may read (`Executable.get_source`), if there is one."""
    details: tuple[OpDetail, ...] = ()

    @staticmethod
    def of(module: RegionModule, details: Sequence[OpDetail] = ()) -> Blob:
        """The blob that `module.save` makes."""
        kind = type(module)
        loader = f"{kind.__module__}:{kind.__qualname__}"
        return Blob(module.save(), loader, module.get_source(), tuple(details))


GeneratedCode: TypeAlias = NativeCode | CSource | Blob


@dataclass(frozen=True)
class Profitability:
    """What a backend computes faster in another precision than in `f32`."""

    ops: frozenset[str] = frozenset()
    """Convolutions and matrix products by Relay name (`nn.conv2d`). Their operands may then be of
    that type and their results of either; in composites with functions of their results, what is
    around them is in `f32`: `to-mixed-precision` shows both."""
    reason: str = "it computes nothing faster in that type"
    """Why there are none, if so."""
    least: int = 0
    """Products of fewer multiplications than that gain nothing."""
    faster_in_f32: Rule = lambda op: None
    """Why one of them, alone or in its composite, is faster in `f32` after all: asked before the
    model is changed, where all of it is `f32`."""
    following: frozenset[str] = frozenset()
    """Composites without a product that may read and write that type, constants aside: what is in
    them is in `f32`."""


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

    used_by_default: ClassVar[bool] = False
    """True if models are compiled for it when no targets are named."""

    priority: ClassVar[int] = 100
    """Order among the backends used by default: the higher one is asked first for each op, of equal
    ones the first by name. `dnnl` has 0, so that a device comes before the processor."""

    is_fallback_interpreter: ClassVar[bool] = False
    """Whether it takes any `relay.onnx_node`: then such nodes go to it though no one asked."""

    runs_models: ClassVar[bool] = False
    """Whether `interpreter` runs any model: then compiled models can be compared with it."""

    is_cacheable: ClassVar[bool] = True
    """Whether the same model, options, package and machine always give code that is as good: if
    so, another process may take it from the disk (`compile(cache=…)`)."""

    environment: ClassVar[tuple[str, ...]] = ()
    """Environment variables that its code depends on."""

    options: ClassVar[Mapping[str, Option]] = {}
    """The options that users may give, by name: `targets=("npu{tiles=4}",)`."""

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        """The value of each option in this compilation; rules may depend on it."""
        return {name: option.default for name, option in self.options.items()}

    def unavailable(self) -> str | None:
        """Why this backend cannot be used on this machine and what to install, or `None`."""
        return None

    def describe(self) -> str:
        """One line on what the backend found on this machine, for `byoc doctor`."""
        return "ready"

    def op_rules(self) -> Mapping[str, Rule]:
        """Rules for single ops, keyed by Relay name (`nn.conv2d`)."""
        return {}

    def patterns(self) -> Sequence[CompositePattern]:
        """Patterns for composites; the first one that matches wins."""
        return ()

    def profitability(self, element_type: str) -> Profitability:
        """What is faster in `element_type` (`bf16`, `f16`) on this machine.

        Models of 16-bit floats stay as they are where a target gains from `f16`; else they are
        computed in `f32`. `bf16x3` is asked for, too: products of `bf16` that are three times as
        long stand for those of `f32` then (`split-products`).
        """
        return Profitability()

    def dialects(self) -> Sequence[Dialect]:
        """Dialects of the backend's own, which `byoc-opt` shall read."""
        return ()

    def passes(self) -> Mapping[str, Callable[[], type[ModulePass]]]:
        """Passes of the backend's own, which `byoc-opt` shall run, by name."""
        return {}

    def module_passes(self) -> Sequence[ModulePass]:
        """Passes to run on the whole module before it is partitioned.

        Other backends and the host get what they leave, so a pass must keep what the model
        computes, the functions' types, and locations (`new.location = op.location`), and may make
        `relay` ops only. It works on a copy: what a failing pass did is dropped, with a warning.
        """
        return ()

    def region_passes(self) -> Sequence[ModulePass]:
        """Passes to run on a module that holds a copy of each of this backend's regions.

        They may turn the bodies into any dialect, and keep the functions' names and types. A
        region for which they fail goes to the next target, or to the host, as it was.
        """
        return ()

    @abstractmethod
    def codegen(self, region: FuncOp, context: CodegenContext) -> GeneratedCode:
        """Code for one outlined region, `func.func private @R(tensors) -> tensors`.

        The body holds `relay` ops and `byoc.composite`s of this backend, or what `region_passes`
        made of them. It must not be kept or changed. An exception sends the region to the next
        target, or back to the host; its text reaches the report.
        """

    def estimated_milliseconds(self, region: FuncOp, context: CodegenContext) -> float | None:
        """About what an outlined region takes on one thread; `None` where that is not known.

        It is compared with an estimate for the host that is mostly right within a fifth: one that
        is less so had better be `None`. Asked when the user names no targets, before
        `region_passes`; what it finds out may be kept for `codegen`.
        """
        return None

    def faster_on_host(self, region: FuncOp) -> str | None:
        """Why the host runs an outlined region faster, where the backend knows; else `None`.

        Asked only when the user names no targets, since who names a backend gets it, and only about
        regions whose estimates are near or not known, and that are too large to be measured.
        """
        return None

    def interpreter(self, model: ModelProto) -> Callable[[Mapping[str, Array]], Sequence[Array]]:
        """What runs a whole model without compiling it, if the backend has that.

        A fallback interpreter is asked for nodes on strings, which native code has no layout for;
        one that runs any model, for what `Executable.verify` compares with.

        Returns:
            The outputs in order, for inputs by name.
        """
        raise NotImplementedError(f"backend '{self.name}' runs no models")

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[GeneratedCode | Exception]:
        """Code for all regions of a model at once, in their order.

        A backend overrides it to share code or constants between regions. A region that cannot be
        compiled has an exception in its place. When the call itself raises, it is made again for
        each region alone, so that only those go back to the host that fail.
        """
        return [attempt(self.codegen, region, context) for region in regions]


def attempt(
    codegen: Callable[[FuncOp, CodegenContext], GeneratedCode],
    region: FuncOp,
    context: CodegenContext,
) -> GeneratedCode | Exception:
    """The code that `codegen` returns for a region, or what it raises."""
    try:
        return codegen(region, context)
    except Exception as error:  # a backend is foreign code: whatever it raises is a refusal
        return error
