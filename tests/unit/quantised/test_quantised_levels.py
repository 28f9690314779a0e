"""Quantised ops in all combinations, shared by the instruction sets that this machine has."""

from __future__ import annotations

import pytest
from quantised_levels import check_level

from byoc_mlir.testing.isa import call_at

_SHARES = 7
"""Number of shares of the cases, of which each level checks one; `check_level(turn, "1")` checks
all.

The size of no axis of the combinations is a multiple of it, so that a share has each value of each
axis.
"""


@pytest.mark.parametrize(("level", "turn"), [("avx2", 0), ("avx512", 1), ("amx", 2)])
def test_level(level: str, turn: int) -> None:
    call_at(level, check_level, str(turn), str(_SHARES))
