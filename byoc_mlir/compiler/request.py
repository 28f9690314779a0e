"""Options of `compile`, each written once.

A field of `Request` is an argument of `compile`; `option` says how its values are checked, how the
documentation and the help of the commands describe it, how it is written on a command line, and if
compiled programs depend on it.
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
    """A model, and how the caller of `compile` wants it compiled."""

    model: ModelSource
    targets: Sequence[str] | None = option(
        None,
        """backends in order of preference, with options where wanted, `"mine{mode=fast}"`; none
        compiles everything for the host. Left out: every backend that is used by default and runs
        on this machine.""",
        accept_targets,
        flag="--targets NAME",
    )
    threads: int | None = option(
        None,
        """OpenMP threads per run; left out: the cores that this process may use.""",
        accept_anything,
        flag="--threads N",
    )
    precision: str = option(
        "f32",
        """`"f32"`: full single precision, nothing is rounded to less. `"bf16"`: where this
        processor is faster so, products read numbers rounded to 16 bits; inputs, outputs and sums
        stay in `f32`. `"bf16x3"`: where that is faster, products are three of `bf16` each, with
        errors of at most 3e-5 of the largest result. See docs/precision.md.""",
        choices=Precision,
        flag="--precision",
    )
    fallback: str = option(
        "warn",
        """`"warn"` warns when a convolution or matrix product stays on the host, `"allow"` does
        not, `"forbid"` raises when any node does.""",
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
        """`"estimated"` sends regions with little work back to the host, `"measured"` those that
        ran faster there when both were timed while compiling; `"auto"` times models of little work,
        and compares estimates in others (docs/partitioning.md); `"off"` keeps all. Left out:
        `"off"` where targets are named or fallback is `"forbid"`, else `"auto"`.""",
        choices=Prune,
        flag="--prune",
    )
    denormals: str = option(
        "keep",
        """`"keep"` computes with them, `"flush"` takes them for zero while the model runs, which
        some processors do much faster. See docs/processes.md.""",
        choices=Denormals,
    )
    cache: Folder = option(
        None,
        """a folder that keeps compiled models for other processes, or `False` for none; left out:
        the one that the environment variable `BYOC_CACHE_DIR` names, else the user's, unless
        `BYOC_CACHE` is `off`. See docs/compile-time.md.""",
        accept_cache,
        is_key=False,
    )
    limits: Limits = option(
        DEFAULT_LIMITS,
        """how much the model may ask for; left out: `Limits()`. See docs/limits.md.""",
        accept_limits,
        flag="--limit NAME=VALUE",
        is_repeated=True,
        is_key=False,
    )
    profile: bool = option(
        False,
        """lets `Executable.profile` tell the time of each step. Reading the clock takes some 25 ns
        a step. See docs/profiling.md.""",
        accept_bool,
    )
    dump_ir: str | Path | None = option(
        None,
        """a folder for the IR after each pass, LLVM's IR and assembly, and what backends generated.
        Nothing comes from the cache then. See docs/debugging.md.""",
        accept_folder,
        is_key=False,
    )
    calibration: str | Path | Document | None = option(
        None,
        """a file of what was measured, from `byoc compile --write-calibration`. The same file gives
        the same code, and nothing is measured. See docs/dev-notes/costs.md.""",
        accept_calibration,
        flag="--calibration FILE",
    )
    disable: Sequence[str] = option(
        (),
        """names of passes, patterns and backends to leave out, as `"simplify"` and
        `"mine.conv2d_relu"`, to find the one that makes a difference. See docs/debugging.md.""",
        accept_names("names, as ('simplify',)", is_ordered=False),
        flag="--disable NAME",
        is_repeated=True,
    )
    passes: Sequence[str] = option(
        (),
        """passes of your own, with options where wanted, as `"my-pass{factor=2}"`; they run on the
        model before it is partitioned. See docs/passes.md.""",
        accept_names("names, as ('my-pass',)"),
        flag="--pass NAME",
        is_repeated=True,
    )
    tune: float | None = option(
        None,
        """seconds to look for faster ways to compute the host's kernels, which are kept for all
        processes of this machine; the model is compiled as often as that time allows. A warning
        says why, where everything stays as it was. See docs/tuning.md.""",
        accept_anything,
        is_key=False,
    )
    sizes: Mapping[str, int] = option(
        {},
        """numbers for symbolic dimensions of inputs and outputs, by name, which no input may
        contradict. See docs/shapes.md.""",
        accept_sizes,
        flag="--size NAME=8",
        is_repeated=True,
    )
    exact: Sequence[str] = option(
        (),
        """names of nodes whose products are computed in `f32` whatever the precision.""",
        accept_names("nodes' names, as ('/Conv_1',)", is_ordered=False),
        flag="--exact NODE",
        is_repeated=True,
    )
    samples: Sequence[Mapping[str, Any]] | None = option(
        None,
        """inputs like those that the model will get, which are run to find further nodes that stay
        exact, so that outputs are close to those in `f32`. The model is compiled some 25 times. See
        docs/precision.md.""",
        accept_anything,
        flag="--samples FILE.npz",
        is_repeated=True,
        is_key=False,
    )
    weight_memory: float = option(
        2.0,
        """what packed weights may take, in times of the model's, beside as much as its intermediate
        values take. Where faster convolutions need more, slower ones are taken; infinity sets no
        bound. See docs/dev-notes/costs.md.""",
        accept_weight_memory,
        flag="--weight-memory TIMES",
    )
    interpreter: bool = option(
        True,
        """lets a model whose sizes come with its inputs answer at once, node by node, while another
        process compiles it; not where the cache has it, or is off, or anything else is asked for
        but `threads`. See docs/tiered-execution.md.""",
        accept_bool,
        is_key=False,
    )
    trusted: bool = option(
        False,
        """accepts ops of all dialects in a `.mlir` file, which may run any native code. Left out:
        those that compute on tensors. See docs/limits.md.""",
        accept_bool,
        flag="--trusted",
        is_key=False,
    )

    def checked(self) -> Request:
        """Returns a request that nothing changes: neither its arguments, which the caller may
        change later, nor another current folder; its file of calibration is read. `CompileOptions`
        knows what else is accepted of targets, passes and `disable`.

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
        """Returns the request without the memory that a model takes; the path of one stays."""
        return self if isinstance(self.model, str | Path) else replace(self, model=b"")

    @property
    def plain_file(self) -> Path | None:
        """The ONNX file of a request that says nothing of how it is compiled, but for how many
        threads; `None` of others.
        """
        if not isinstance(self.model, Snapshot):
            return None
        is_plain = replace(self, threads=None, fallback="warn", cache=None) == Request(self.model)
        return self.model.path if is_plain else None

    @property
    def choices(self) -> dict[str, object]:
        """All that programs depend on but the model, as JSON can say it.

        The limits are no part of it: they say what is refused, not what is made.
        """
        chosen = {name: getattr(self, name) for name, info in OPTIONS.items() if info.is_key}
        return {**chosen, "threads": self.threads or available_threads()}


OPTIONS: Mapping[str, OptionInfo] = {
    one.name: one.metadata["option"] for one in fields(Request) if one.metadata
}
"""Options of `compile` by name, in the order of its arguments."""
