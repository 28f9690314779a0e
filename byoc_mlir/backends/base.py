"""The contract between the compiler and a backend.

A backend says what it can run (`op_rules`, `patterns`) and turns a region into code (`codegen`).
Rules and checks are pure functions of the IR; code generation may use the machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Dialect, Operation
from xdsl.passes import ModulePass

from byoc_mlir.dialects.relay import Weight
from byoc_mlir.patterns import CompositePattern

API_VERSION = 1
"""Raised when the contract changes in a way that breaks existing backends."""

Rule: TypeAlias = Callable[[Operation], str | None]
"""`None` accepts the op; a string is the reason why the backend refuses it."""


@dataclass(frozen=True)
class CodegenContext:
    """What a code generator may want to know beside the region itself."""

    threads: int
    """OpenMP threads that `run` will use, at least 1."""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """The user's options for this backend, `backend_options={"dnnl": {"winograd": "off"}}`."""


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
    each, zero at first). 0 means success, anything else is a status for the error message. Tensors
    are dense, row-major, and do not overlap. A constant is the address of the external global
    `weight_symbol(digest)`; list its handle in `constants` (`ConstantOp.weight`).
    """

    module: ModuleOp
    state_slots: int = 0
    context_slots: int = 0
    workspace_bytes: int = 0
    """Memory in the arena that is free for the region during a run, 64-byte aligned."""
    constants: tuple[Weight, ...] = ()
    """Every constant whose symbol the code uses."""
    libraries: tuple[Path, ...] = ()
    """Shared objects that define the symbols the code calls."""
    details: tuple[OpDetail, ...] = ()


@dataclass(frozen=True)
class CSource:
    """C source that defines `void R(const T *input_0, …, T *output_0, …)` for region symbol `R`.

    Constants of the region come first among the inputs, in the order they stand in its body.
    Compiling needs a C compiler (`$CC` or `cc`) where the model is compiled.
    """

    source: str
    flags: tuple[str, ...] = ("-O2",)
    details: tuple[OpDetail, ...] = ()


@dataclass(frozen=True)
class Blob:
    """Opaque bytes and the function that makes them callable.

    `loader` is `"package.module:function"`; called once with `data` it returns a callable that
    takes the region's inputs and outputs as two lists of numpy arrays and fills the outputs.
    """

    data: bytes
    loader: str
    details: tuple[OpDetail, ...] = ()


GeneratedCode: TypeAlias = NativeCode | CSource | Blob


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
    """Whether models are compiled for it when no targets are named."""

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

    def dialects(self) -> Sequence[Dialect]:
        """Dialects of the backend's own, which `byoc-opt` shall read."""
        return ()

    def passes(self) -> Mapping[str, Callable[[], type[ModulePass]]]:
        """Passes of the backend's own, which `byoc-opt` shall run, by name."""
        return {}

    @abstractmethod
    def codegen(self, region: FuncOp, context: CodegenContext) -> GeneratedCode:
        """Code for one outlined region, `func.func private @R(tensors) -> tensors`.

        The body holds `relay` ops and `byoc.composite`s of this backend. It must not be kept or
        changed. An exception sends the region back to the host; its text reaches the report.
        """


def weight_symbol(digest: str) -> str:
    """The external symbol whose address is the first byte of a stored constant."""
    return f"byoc_weight_{digest}"
