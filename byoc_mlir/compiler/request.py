"""What a caller asks of `compile`, as written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_mlir.runtime.threads import available_threads

if TYPE_CHECKING:
    from byoc_mlir.backends import Setting
    from byoc_mlir.compiler.source import ModelSource


@dataclass(frozen=True)
class Request:
    """The arguments of `compile`, not checked yet; it documents them."""

    model: ModelSource
    targets: Sequence[str] | None
    threads: int | None
    precision: str
    fallback: str
    backend_options: Mapping[str, Mapping[str, Setting]]
    prune: str | None
    denormals: str

    @property
    def choices(self) -> list[object]:
        """All but the model, as JSON can say it."""
        return [
            None if self.targets is None else list(self.targets),
            available_threads() if self.threads is None else self.threads,
            self.precision,
            self.fallback,
            {name: dict(options) for name, options in self.backend_options.items()},
            self.prune,
            self.denormals,
        ]
