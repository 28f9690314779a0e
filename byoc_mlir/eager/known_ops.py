"""The ops that are run eagerly: those whose results are ONNX Runtime's, and quick enough."""

from __future__ import annotations

from collections.abc import Set

KNOWN_OPS: Set[str] = frozenset()
"""Names of ops of ONNX's default domain."""
