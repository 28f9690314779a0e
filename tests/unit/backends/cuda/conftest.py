"""The recording driver in the place of NVIDIA's."""

from __future__ import annotations

from helpers.cuda.fixtures import gpu

__all__ = ["gpu"]
