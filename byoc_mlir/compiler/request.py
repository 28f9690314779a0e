"""Options of `compile`, each written once.

A field of `Request` is an argument of `compile`. Its `option` defines the check of its values, its
documentation and command-line help, and its flag. It also declares if compiled programs depend on
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from byoc_mlir.abi import Precision
from byoc_mlir.calibration import Document
from byoc_mlir.compiler.option_info import (
    OptionInfo,
    accept_anything,
    accept_backend_options,
    accept_bool,
    accept_cache,
    accept_calibration,
    accept_folder,
    accept_limits,
    accept_names,
    accept_resident,
    accept_sizes,
    accept_targets,
    accept_weight_memory,
    option,
)
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.files import open_file
from byoc_mlir.limits import DEFAULT_LIMITS, Limits
from byoc_mlir.runtime.system.threads import available_threads, check_threads

if TYPE_CHECKING:
    from byoc_mlir.backends import Setting
    from byoc_mlir.compiler.cache.folder import Folder
    from byoc_mlir.compiler.source import ModelSource

Fallback: TypeAlias = Literal["allow", "warn", "forbid"]
Prune: TypeAlias = Literal["off", "estimated", "measured", "auto"]
Denormals: TypeAlias = Literal["keep", "flush"]


@dataclass(frozen=True)
class Request:
    """Model, and the options of its compilation."""

    model: ModelSource
    targets: Sequence[str] | None = option(
        None,
        """backends in order of preference, with options if needed, `"mine{mode=fast}"`; an empty
        sequence compiles everything for the host. By default: every backend with `used_by_default`
        that runs on this machine.""",
        accept_targets,
        flag="--targets NAME",
    )
    threads: int | None = option(
        None,
        """OpenMP threads per run; by default: the cores that this process may use.""",
        accept_anything,
        flag="--threads N",
    )
    precision: str = option(
        "f32",
        """`"f32"`: full single precision, without rounding to less. `"bf16"`: if this processor is
        faster with it, matmuls and convolutions round their operands to 16 bits; inputs, outputs
        and sums stay in `f32`. `"bf16x3"`: if that is faster, each `f32` matmul or convolution is
        three in `bf16`, with errors of at most 3e-5 of the largest result. `"tf32"`, `"f16"`: a
        target rounds the operands to 10 bits of mantissa, in `f32` or in `f16`. See
        docs/precision.md.""",
        choices=Precision,
        flag="--precision",
    )
    fallback: str = option(
        "warn",
        """`"warn"` warns if a convolution or matmul stays on the host, `"allow"` does not,
        `"forbid"` raises if any node stays there.""",
        choices=Fallback,
        flag="--fallback",
    )
    _: KW_ONLY
    backend_options: Mapping[str, Mapping[str, Setting]] = option(
        {},
        """the targets' options in another form, `{"mine": {"mode": "fast"}}`.""",
        accept_backend_options,
    )
    prune: str | None = option(
        None,
        """`"estimated"` sends regions with little work back to the host. `"measured"` times each
        region on its backend and on the host during compilation, and sends the slower ones back.
        `"auto"` times small models, and compares estimates for others (docs/partitioning.md).
        `"off"` keeps all regions. By default: `"off"` if targets are named or fallback is
        `"forbid"`, else `"auto"`.""",
        choices=Prune,
        flag="--prune",
    )
    denormals: str = option(
        "keep",
        """`"keep"` computes with denormals, `"flush"` replaces them by zero while the model runs,
        which is much faster on some processors. See docs/processes.md.""",
        choices=Denormals,
    )
    cache: Folder = option(
        None,
        """a folder that keeps compiled models for other processes, or `False` for none. By default:
        the folder in the environment variable `BYOC_CACHE_DIR`, else the user's, unless
        `BYOC_CACHE` is `off`. See docs/compile-time.md.""",
        accept_cache,
        is_key=False,
    )
    limits: Limits = option(
        DEFAULT_LIMITS,
        """limits of the model's resources; by default: `Limits()`. See docs/limits.md.""",
        accept_limits,
        flag="--limit NAME=VALUE",
        is_repeated=True,
        is_key=False,
    )
    profile: bool = option(
        False,
        """enables `Executable.profile`, which reports the time of each step. Reading the clock
        takes some 25 ns a step. See docs/profiling.md.""",
        accept_bool,
    )
    dump_ir: str | Path | None = option(
        None,
        """a folder for the IR after each pass, LLVM IR and assembly, and the code that backends
        generated. It disables the cache. See docs/debugging.md.""",
        accept_folder,
        is_key=False,
    )
    calibration: str | Path | Document | None = option(
        None,
        """a calibration file from `byoc compile --write-calibration`. The same file gives the same
        code, and nothing is measured. See docs/dev-notes/costs.md.""",
        accept_calibration,
        flag="--calibration FILE",
    )
    disable: Sequence[str] = option(
        (),
        """names of passes, patterns and backends to disable, such as `"simplify"` and
        `"mine.conv2d_relu"`, to find the one that makes a difference. See docs/debugging.md.""",
        accept_names("names, as ('simplify',)", is_ordered=False),
        flag="--disable NAME",
        is_repeated=True,
    )
    passes: Sequence[str] = option(
        (),
        """names of your own passes, with options if needed, such as `"my-pass{factor=2}"`; they run
        on the model before it is partitioned. See docs/passes.md.""",
        accept_names("names, as ('my-pass',)"),
        flag="--pass NAME",
        is_repeated=True,
    )
    tune: float | None = option(
        None,
        """seconds to search for faster ways to compute the host's kernels, which are kept for all
        processes of this machine. The search compiles the model as often as that time allows, and
        warns if nothing changes. See docs/tuning.md.""",
        accept_anything,
        is_key=False,
    )
    resident: Mapping[str, str] = option(
        {},
        """devices in whose memory inputs and outputs stay, by name: `{"x": "npu"}`. A run takes
        and returns `DeviceArray`s for them, and copies nothing. See docs/accelerators.md.""",
        accept_resident,
        flag="--resident NAME=DEVICE",
        is_repeated=True,
    )
    sizes: Mapping[str, int] = option(
        {},
        """numbers for symbolic dimensions of inputs and outputs, by name; all inputs must match
        them. See docs/shapes.md.""",
        accept_sizes,
        flag="--size NAME=8",
        is_repeated=True,
    )
    exact: Sequence[str] = option(
        (),
        """names of nodes whose matmuls and convolutions stay in `f32` at any precision.""",
        accept_names("nodes' names, as ('/Conv_1',)", is_ordered=False),
        flag="--exact NODE",
        is_repeated=True,
    )
    samples: Sequence[Mapping[str, Any]] | None = option(
        None,
        """typical inputs of the model. They are run to find further nodes that must stay exact, so
        that outputs are close to those in `f32`. The model is compiled some 25 times. See
        docs/precision.md.""",
        accept_anything,
        flag="--samples FILE.npz",
        is_repeated=True,
        is_key=False,
    )
    weight_memory: float = option(
        2.0,
        """limit of the memory for packed weights, as a multiple of the model's weights, in addition
        to the memory of its intermediate values. If faster convolutions need more, slower ones
        replace them; infinity sets no limit. See docs/dev-notes/costs.md.""",
        accept_weight_memory,
        flag="--weight-memory TIMES",
    )
    merge_equal: bool = option(
        False,
        """computes ops with equal operands and attributes once, before the model is partitioned.
        The search for them takes compile time.""",
        accept_bool,
        flag="--merge-equal",
    )
    load: bool = option(
        True,
        """loads the program into this process. `False` loads it at its first run, so that a model
        for a device compiles on a machine that lacks the device. See docs/accelerators.md.""",
        accept_bool,
        is_key=False,
    )
    interpreter: bool = option(
        True,
        """enables tiered execution: an ONNX file runs in the interpreter tier, while another
        process compiles it. It has no effect if the cache has the model or is off, or if
        options other than `threads`, `cache` and `fallback="allow"` are set. See
        docs/tiered-execution.md.""",
        accept_bool,
        is_key=False,
    )
    trusted: bool = option(
        False,
        """accepts ops of all dialects in a `.mlir` file, which may run any native code. By default:
        only ops that compute on tensors. See docs/limits.md.""",
        accept_bool,
        flag="--trusted",
        is_key=False,
    )

    def checked(self) -> Request:
        """Returns a checked copy, which later changes of the arguments or of the current folder do
        not affect.

        The method reads the calibration file. `CompileOptions` checks targets, passes and `disable`
        further.

        Raises:
            InvalidModelError: the model's file cannot be read.
            LimitExceededError: there are too many threads.
            ByocError: an argument is not as `compile` documents it.
        """
        normal = {name: info.accept(name, getattr(self, name)) for name, info in OPTIONS.items()}
        check_threads(self.threads, normal["limits"])
        model = self.model
        if isinstance(model, str | Path):
            open_file(model, InvalidModelError).close()
            model = Path(model).absolute()
        return replace(self, model=model, **normal)

    def without_model(self) -> Request:
        """Returns the request without the model's content; a path stays."""
        return self if isinstance(self.model, str | Path) else replace(self, model=b"")

    @property
    def plain_file(self) -> Path | None:
        """Returns the ONNX file of a request with default options, else `None`.

        The options `threads`, `fallback="allow"` and `cache` may differ from their defaults.
        """
        if not isinstance(self.model, Snapshot) or self.fallback == "forbid":
            return None
        is_plain = replace(self, threads=None, fallback="warn", cache=None) == Request(self.model)
        return self.model.path if is_plain else None

    @property
    def choices(self) -> dict[str, object]:
        """Returns the options that programs depend on, in a form for JSON.

        The limits are excluded: they affect which models are refused, not the programs.
        """
        chosen = {name: getattr(self, name) for name, info in OPTIONS.items() if info.is_key}
        return {**chosen, "threads": self.threads or available_threads()}


OPTIONS: Mapping[str, OptionInfo] = {
    one.name: one.metadata["option"] for one in fields(Request) if one.metadata
}
"""Options of `compile` by name, in the order of its arguments."""
