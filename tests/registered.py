"""The registry of ops for a test that registers its own."""

from __future__ import annotations

import pytest

from byoc_mlir.frontend import registry


def hide_own_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the ops that the test registers from now on when the test ends.

    All other ops are imported before: a module that a test imports stays imported, and would
    register its ops in the test's copy alone.
    """
    registry.all_ops()
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
