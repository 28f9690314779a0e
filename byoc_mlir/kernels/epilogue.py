"""What kernels do with a result on its way to memory."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Literal

Limits = Literal["none", "relu", "clip"]
"""None, a lower one of 0, or any."""


@dataclass(frozen=True)
class Epilogue:
    """The sum with a bias for each channel, the sum with a residual, then limits."""

    bias: bool = False
    residual: bool = False
    lower: float = -math.inf
    upper: float = math.inf

    @property
    def limits(self) -> Limits:
        """What kind of limits there are."""
        if (self.lower, self.upper) == (-math.inf, math.inf):
            return "none"
        return "relu" if (self.lower, self.upper) == (0.0, math.inf) else "clip"

    @property
    def suffix(self) -> str:
        """What tells code with different sums apart."""
        return "_bias" * self.bias + "_sum" * self.residual


def float_bits(value: float) -> int:
    """The bits of a number in `f32`."""
    return struct.unpack("<I", struct.pack("<f", value))[0]
