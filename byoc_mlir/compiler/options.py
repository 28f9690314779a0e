"""Options of one compilation: a request with all defaults resolved."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

from byoc_mlir.abi import HOST_SPACE, Precision
from byoc_mlir.backends import Backend, Setting, Target, backend_names, get_backend
from byoc_mlir.calibration import Document
from byoc_mlir.compiler.devices import check_devices, why_missing
from byoc_mlir.compiler.request import Denormals, Fallback, Prune, Request
from byoc_mlir.errors import BackendError, ByocError
from byoc_mlir.runtime.system.threads import available_threads
from byoc_mlir.warned import warn_user


@dataclass(frozen=True)
class CompileOptions(Request):
    """Checked request without its model; its fields have narrower types."""

    targets: tuple[str, ...] = ()
    """Checked targets with their options: `dnnl{winograd=off}`."""
    threads: int = 1
    precision: Precision = "f32"
    fallback: Fallback = "warn"
    prune: Prune = "off"
    denormals: Denormals = "keep"
    dump_ir: Path | None = None
    calibration: Document | None = None
    disable: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    is_default: bool = False
    """True if the caller named no targets."""
    omitted: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reasons of the targets that the compilation omits after all, by backend."""

    @staticmethod
    def of(request: Request) -> CompileOptions:
        """Returns the options of a checked request.

        Raises:
            ByocError: a value is not accepted; the message lists the accepted values.
        """
        targets, prune = request.targets, request.prune
        if prune is None:
            prune = "auto" if targets is None and request.fallback != "forbid" else "off"
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
        if request.passes or request.disable:
            _check_names(request, asked)
        used = tuple(one for one in asked if Target.parse(one).name not in request.disable)
        on_devices = [one for one in map(get_backend, used) if one.memory_space != HOST_SPACE]
        if request.load and on_devices:
            check_devices(on_devices)
        if request.precision in _PRECISIONS_OF_DEVICES:
            _check_precision(request.precision, used)
        decided: dict[str, Any] = {
            "model": b"",
            "targets": used,
            "threads": available_threads() if request.threads is None else request.threads,
            "prune": prune,
            "is_default": is_default,
        }
        said = {one.name: getattr(request, one.name) for one in fields(Request)}
        return CompileOptions(**{**said, **decided})

    def without_device(self, device: str) -> CompileOptions:
        """Returns the options without the targets that run on a device, which lacks memory."""
        backends = {target: get_backend(target) for target in self.targets}
        kept = tuple(name for name, one in backends.items() if one.memory_space != device)
        reason = f"device '{device}' has too little memory"
        omitted = {one.name: reason for name, one in backends.items() if name not in kept}
        return replace(self, targets=kept, omitted={**self.omitted, **omitted})


def _check_names(request: Request, targets: Sequence[str]) -> None:
    """Checks the names of the user's passes and of what is disabled."""
    from byoc_mlir.compiler.disable import check_disabled
    from byoc_mlir.compiler.user_passes import names_of, passes_of

    passes_of(request.passes)  # it checks options, too
    check_disabled(request.disable, targets, names_of(request.passes))


_PRECISIONS_OF_DEVICES = ("tf32", "f16")
"""Precisions that some backends of devices have, and the host has not."""


def _check_precision(precision: str, targets: Sequence[str]) -> None:
    """Checks that a target computes in a precision.

    Raises:
        ByocError: none does; the message lists the precisions of these targets.
    """
    from byoc_mlir.transforms.profitability import why_unprofitable  # few models need it

    reason = why_unprofitable(precision, targets)
    if reason is None:
        return
    others = (one for one in get_args(Precision) if one not in ("f32", precision))
    served = ["f32", *(one for one in others if why_unprofitable(one, targets) is None)]
    raise ByocError(
        f"no target computes in precision={precision!r} ({reason}); accepted for these targets are"
        f" {', '.join(map(repr, served))}"
    )


def targets_with_options(
    targets: Sequence[str], options: Mapping[str, Mapping[str, Setting]]
) -> tuple[str, ...]:
    """Merges separately given options into the targets, and checks them.

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
    """Returns the default backends in order of preference, and why each other backend is unusable
    here.

    A backend that cannot be loaded does not stop the compilation.
    """
    usable: list[str] = []
    missing: dict[str, str] = {}
    backends: list[Backend] = []
    for name in backend_names():
        try:
            backends.append(get_backend(name))
        except BackendError as error:
            missing[name] = str(error)
    used = [backend for backend in backends if backend.used_by_default]
    for backend in sorted(used, key=lambda backend: -backend.priority):
        name = backend.name
        reason = why_unusable(backend)
        if reason is None:
            usable.append(name)
        else:
            missing[name] = reason
    return tuple(usable), missing


def why_unusable(backend: Backend) -> str | None:
    """Returns why a backend, or its device, is not usable here, or `None`."""
    is_on_host = backend.memory_space == HOST_SPACE
    try:
        return backend.unavailable() or (None if is_on_host else why_missing(backend))
    except BackendError as error:  # its device cannot be loaded
        return str(error)


def _warn_of_missing(missing: Mapping[str, str]) -> None:
    for name, reason in missing.items():
        warn_user(
            f"the model is compiled without backend '{name}': {reason}; targets=() is the host"
            " alone, without this warning",
        )
