"""What a caller asks of `compile`, as written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from byoc_mlir.boundary import check_argument
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.errors import ByocError, InvalidModelError
from byoc_mlir.files import open_file
from byoc_mlir.limits import DEFAULT_LIMITS, Limits
from byoc_mlir.rates import Document
from byoc_mlir.runtime.system.threads import available_threads, check_threads

if TYPE_CHECKING:
    from byoc_mlir.backends import Setting
    from byoc_mlir.compiler.source import ModelSource


@dataclass(frozen=True)
class Request:
    """The arguments of `compile`, not checked yet; it documents them."""

    model: ModelSource
    _: KW_ONLY
    targets: Sequence[str] | None = None
    threads: int | None = None
    precision: str = "f32"
    fallback: str = "warn"
    backend_options: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    prune: str | None = None
    denormals: str = "keep"
    limits: Limits = DEFAULT_LIMITS
    profile: bool = False
    dump_ir: str | Path | None = None
    rates: Document | None = None
    """What a file of rates says."""
    disable: Sequence[str] = ()
    passes: Sequence[str] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    exact: Sequence[str] = ()
    weight_memory: float = 2.0
    trusted: bool = False

    def check(self) -> None:
        """Refuses arguments of a wrong type; what their values may be, `CompileOptions` knows.

        Raises:
            InvalidModelError: the model's file cannot be read.
            LimitExceededError: there are too many threads.
            ByocError: an argument is not of the type that `compile` documents.
        """
        check_argument("limits", self.limits, Limits, "a byoc_mlir.Limits, or None")
        if isinstance(self.model, str | Path):
            open_file(self.model, InvalidModelError).close()
        if isinstance(self.targets, str):
            raise ByocError(f"targets must be a sequence of names, as ({self.targets!r},)")
        if self.targets is not None and not _is_texts(self.targets):
            raise ByocError(
                f"targets is {self.targets!r}, accepted is a sequence of backends' names, as"
                " ('dnnl',)"
            )
        check_threads(self.threads, self.limits)
        for name, value in (("precision", self.precision), ("fallback", self.fallback)):
            check_argument(name, value, str, "text")
        check_argument("dump_ir", self.dump_ir, str | Path | None, "the path of a folder, or None")
        check_argument("weight_memory", self.weight_memory, int | float, "a number, 1 or more")
        if not self.weight_memory >= 1:
            raise ByocError(
                f"weight_memory is {self.weight_memory}, accepted are numbers of 1 and more: the"
                " packed weights in times of the model's"
            )
        check_argument("profile", self.profile, bool, "True or False")
        check_argument("trusted", self.trusted, bool, "True or False")
        for name, values, accepted in (
            ("disable", self.disable, "names, as ('simplify',)"),
            ("passes", self.passes, "names, as ('my-pass',)"),
            ("exact", self.exact, "nodes' names, as ('/Conv_1',)"),
        ):
            if isinstance(values, str) or not _is_texts(values):
                raise ByocError(f"{name} is {values!r}, accepted is a sequence of {accepted}")
        if not _is_sizes(self.sizes):
            raise ByocError(
                f"sizes is {self.sizes!r}, accepted is a dictionary from names of dimensions to"
                " numbers, 0 and more, as {'batch': 8}"
            )
        if not _is_options(self.backend_options):
            raise ByocError(
                f"backend_options is {self.backend_options!r}, accepted is a dictionary of"
                " dictionaries, as {'dnnl': {'winograd': False}}"
            )

    @property
    def plain_file(self) -> Path | None:
        """The ONNX file of a request that says nothing of how it is compiled, but for how many
        threads; `None` of others.
        """
        if not isinstance(self.model, Snapshot):
            return None
        is_plain = replace(self, threads=None, fallback="warn") == Request(self.model)
        return self.model.path if is_plain else None

    def fixed(self) -> Request:
        """Returns a checked request that nothing changes: neither its arguments, which the caller
        may change later, nor another current folder. Its model has a `Snapshot` for that.
        """
        model, dump_ir = self.model, self.dump_ir
        if isinstance(model, str | Path):
            model = Path(model).absolute()
        return replace(
            self,
            model=model,
            targets=None if self.targets is None else tuple(self.targets),
            backend_options={name: dict(found) for name, found in self.backend_options.items()},
            dump_ir=None if dump_ir is None else Path(dump_ir).absolute(),
            disable=tuple(self.disable),
            passes=tuple(self.passes),
            sizes=dict(self.sizes),
            exact=tuple(self.exact),
        )

    @property
    def choices(self) -> list[object]:
        """All but the model, as JSON can say it.

        The limits are no part of it: they say what is refused, not what is made.
        """
        return [
            None if self.targets is None else list(self.targets),
            available_threads() if self.threads is None else self.threads,
            self.precision,
            self.fallback,
            {name: dict(options) for name, options in self.backend_options.items()},
            self.prune,
            self.denormals,
            self.profile,
            self.rates,
            sorted(self.disable),
            list(self.passes),
            dict(sorted(self.sizes.items())),
            sorted(self.exact),
            self.weight_memory,
        ]


def _is_texts(values: object) -> bool:
    return isinstance(values, Sequence) and all(
        isinstance(value, str) for value in cast(Sequence[object], values)
    )


def _is_sizes(values: object) -> bool:
    return isinstance(values, Mapping) and all(
        isinstance(name, str) and isinstance(size, int) and size >= 0
        for name, size in cast(Mapping[object, object], values).items()
    )


def _is_options(values: object) -> bool:
    return isinstance(values, Mapping) and all(
        isinstance(name, str) and isinstance(options, Mapping)
        for name, options in cast(Mapping[object, object], values).items()
    )
