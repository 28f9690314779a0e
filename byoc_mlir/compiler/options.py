"""What a caller of `compile` may choose."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from byoc_mlir.backends import Setting, Target, backend_names, get_backend
from byoc_mlir.compiler.disable import check_disabled
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.user_passes import names_of, passes_of
from byoc_mlir.errors import BackendError, ByocError
from byoc_mlir.limits import DEFAULT_LIMITS, Limits
from byoc_mlir.rates import Document
from byoc_mlir.runtime.system.threads import available_threads
from byoc_mlir.transforms.to_mixed_precision import Precision

Fallback: TypeAlias = Literal["allow", "warn", "forbid"]
Prune: TypeAlias = Literal["off", "estimated", "measured", "auto"]
Denormals: TypeAlias = Literal["keep", "flush"]


@dataclass(frozen=True)
class CompileOptions:
    """Checked options of one compilation."""

    targets: tuple[str, ...]
    """With their options, checked: `dnnl{winograd=off}`."""
    threads: int
    fallback: Fallback = "warn"
    prune: Prune = "off"
    denormals: Denormals = "keep"
    limits: Limits = DEFAULT_LIMITS
    profile: bool = False
    dump_ir: Path | None = None
    precision: Precision = "f32"
    weight_memory: float = 2.0
    """What packed weights may take, in times of the model's."""
    rates: Document | None = None
    """What decides in place of measurements."""
    is_default: bool = False
    """Whether the caller named no targets, and left it to them and the host what runs where."""
    disable: tuple[str, ...] = ()
    """Passes, patterns and backends that are left out."""
    passes: tuple[str, ...] = ()
    """Passes of the user, with their options, checked."""
    exact: tuple[str, ...] = ()
    """Nodes whose products are computed in `f32` whatever the precision."""

    @staticmethod
    def of(request: Request) -> CompileOptions:
        """The options that a request, whose types are checked, asks for.

        Raises:
            ByocError: a value is not accepted; the message says what is.
        """
        targets, prune = request.targets, request.prune
        if prune is None:
            prune = "auto" if targets is None and request.fallback != "forbid" else "off"
        choices = (
            ("fallback", request.fallback, Fallback),
            ("prune", prune, Prune),
            ("denormals", request.denormals, Denormals),
            ("precision", request.precision, Precision),
        )
        for name, value, kind in choices:
            if value not in get_args(kind):
                accepted = ", ".join(map(repr, get_args(kind)))
                raise ByocError(f"{name} is {value!r}, accepted are {accepted}")
        if request.denormals == "flush" and platform.machine() != "x86_64":
            raise ByocError(
                f"denormals='flush' works on x86-64, this is {platform.machine()}; use 'keep'"
            )
        is_default = targets is None and prune == "auto"
        if targets is None:
            targets, missing = default_targets()
            if request.fallback == "warn":
                _warn_of_missing(missing)
        asked = targets_with_options(targets, request.backend_options)
        passes_of(request.passes)  # it checks names and options
        check_disabled(request.disable, asked, names_of(request.passes))
        return CompileOptions(
            targets=tuple(one for one in asked if Target.parse(one).name not in request.disable),
            threads=available_threads() if request.threads is None else request.threads,
            fallback=cast(Fallback, request.fallback),
            prune=cast(Prune, prune),
            denormals=cast(Denormals, request.denormals),
            limits=request.limits,
            profile=request.profile,
            dump_ir=None if request.dump_ir is None else Path(request.dump_ir),
            precision=cast(Precision, request.precision),
            weight_memory=request.weight_memory,
            rates=request.rates,
            is_default=is_default,
            disable=tuple(sorted(set(request.disable))),
            passes=tuple(request.passes),
            exact=tuple(sorted(set(request.exact))),
        )


def targets_with_options(
    targets: Sequence[str], options: Mapping[str, Mapping[str, Setting]]
) -> tuple[str, ...]:
    """The targets with the options that are given beside them, each option checked.

    Raises:
        BackendError: a backend or an option is unknown, an option is given twice or for no target,
            or its value is not accepted.
    """
    parsed = [Target.parse(target) for target in targets]
    names = [target.name for target in parsed]
    for name in options:
        if name not in names:
            raise BackendError(
                f"there are options for backend '{name}', which is none of the targets:"
                f" {', '.join(names) or 'there are none'}"
            )
    merged: list[str] = []
    for target in parsed:
        given = options.get(target.name, {})
        twice = sorted(given.keys() & target.options.keys())
        if twice:
            raise BackendError(
                f"option '{twice[0]}' of backend '{target.name}' is given in the target and in"
                " backend_options; give it once"
            )
        whole = str(Target(target.name, {**target.options, **given}))
        get_backend(whole)  # it checks name and options
        merged.append(whole)
    return tuple(merged)


def default_targets() -> tuple[tuple[str, ...], dict[str, str]]:
    """The backends used when none are named, in the order in which they are asked, and why others
    of them cannot run on this machine."""
    usable: list[str] = []
    missing: dict[str, str] = {}
    backends = [backend for backend in map(get_backend, backend_names()) if backend.used_by_default]
    for backend in sorted(backends, key=lambda backend: -backend.priority):
        name = backend.name
        reason = backend.unavailable()
        if reason is None:
            usable.append(name)
        else:
            missing[name] = reason
    return tuple(usable), missing


def _warn_of_missing(missing: Mapping[str, str]) -> None:
    for name, reason in missing.items():
        warnings.warn(
            f"the model is compiled without backend '{name}': {reason}; targets=() is the host"
            " alone, without this warning",
            stacklevel=2,
        )
