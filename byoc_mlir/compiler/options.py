"""What a caller of `compile` may choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast, get_args

from byoc_mlir.backends import backend_names, get_backend
from byoc_mlir.errors import ByocError
from byoc_mlir.runtime.threads import available_threads

Fallback: TypeAlias = Literal["allow", "warn", "forbid"]
Precision: TypeAlias = Literal["f32"]


@dataclass(frozen=True)
class CompileOptions:
    """Checked options of one compilation."""

    targets: tuple[str, ...]
    threads: int
    fallback: Fallback = "warn"
    backend_options: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict[str, Mapping[str, str]]
    )

    @staticmethod
    def of(
        targets: Sequence[str] | None,
        threads: int | None,
        precision: str,
        fallback: str,
        backend_options: Mapping[str, Mapping[str, str]] | None,
    ) -> CompileOptions:
        """Options from what the user wrote.

        Raises:
            ByocError: a value is not accepted; the message says what is.
        """
        if isinstance(targets, str):
            raise ByocError(f"targets must be a sequence of names, as ({targets!r},)")
        if threads is not None and threads < 1:
            raise ByocError(f"threads must be at least 1, found {threads}")
        if precision not in get_args(Precision):
            raise ByocError(f"precision is {precision!r}, accepted is 'f32'")
        if fallback not in get_args(Fallback):
            accepted = ", ".join(map(repr, get_args(Fallback)))
            raise ByocError(f"fallback is {fallback!r}, accepted are {accepted}")
        return CompileOptions(
            default_targets() if targets is None else tuple(targets),
            available_threads() if threads is None else threads,
            cast(Fallback, fallback),
            dict(backend_options or {}),
        )


def default_targets() -> tuple[str, ...]:
    """The backends used when none are named: those that say so and run on this machine."""
    backends = [get_backend(name) for name in backend_names()]
    return tuple(
        backend.name
        for backend in backends
        if backend.used_by_default and backend.unavailable() is None
    )
