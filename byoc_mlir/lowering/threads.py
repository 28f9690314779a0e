"""Which loops are worth several threads; where calls choose sizes, each call decides."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntegerAttr

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Dim, Size
from byoc_mlir.kernels.costs import ASSUMED

FEWEST = "host.fewest_iterations"
"""Of an `scf.parallel` whose sizes are arguments: with fewer iterations one thread runs it."""


def is_worth_threads(sizes: Sequence[Size], cycles: float) -> bool:
    """Whether a loop nest is written for several threads.

    Args:
        sizes: how often its loops run.
        cycles: what it takes in all, for the hints of sizes.
    """
    return cycles >= ASSUMED.parallel_cycles or any(isinstance(size, Dim) for size in sizes)


def decide_in_calls(loop: scf.ParallelOp, sizes: Sequence[Size], cycles: float) -> None:
    """Says how many iterations a call must have for several threads, where it chooses sizes.

    Args:
        loop: the loop nest.
        sizes: as for `is_worth_threads`.
        cycles: as for `is_worth_threads`.
    """
    if not any(isinstance(size, Dim) for size in sizes) or cycles <= 0:
        return
    iterations = hint(math.prod(sizes))
    fewest = max(1, math.ceil(ASSUMED.parallel_cycles * iterations / cycles))
    loop.attributes[FEWEST] = IntegerAttr(fewest, IndexType())
