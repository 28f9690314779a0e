"""Networks, oracles and the conformance kit, for tests of this package and of backends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byoc_mlir.testing.conformance import run_conformance

__all__ = ["run_conformance"]


def __getattr__(name: str) -> Any:
    """Imports the conformance kit, and with it the compiler, at its first use."""
    if name not in __all__:
        raise AttributeError(f"module 'byoc_mlir.testing' has no attribute {name!r}")
    from byoc_mlir.testing import conformance

    return getattr(conformance, name)
