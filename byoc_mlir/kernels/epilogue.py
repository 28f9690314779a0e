"""Epilogues: ops that kernels fuse into the store of a result."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Literal

Limits = Literal["none", "relu", "clip"]
"""Clamp of an epilogue: none, a lower limit of 0, or any limits."""


@dataclass(frozen=True)
class Epilogue:
    """Epilogue in this order: per-channel bias, residual sum, clamp to limits."""

    bias: bool = False
    residual: bool = False
    lower: float = -math.inf
    upper: float = math.inf

    @property
    def limits(self) -> Limits:
        """Returns the kind of clamp."""
        if (self.lower, self.upper) == (-math.inf, math.inf):
            return "none"
        return "relu" if (self.lower, self.upper) == (0.0, math.inf) else "clip"


def float_bits(value: float) -> int:
    """Returns the bits of a value in `f32`."""
    return struct.unpack("<I", struct.pack("<f", value))[0]
