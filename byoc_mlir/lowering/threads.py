"""Decision about loops to run on several threads; if sizes are symbolic, each call decides."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntegerAttr

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Dim, Size
from byoc_mlir.kernels.costs import ASSUMED

FEWEST = "host.fewest_iterations"
"""Attribute of an `scf.parallel` with symbolic sizes: with fewer iterations, one thread runs it."""


INDEPENDENT = "host.independent"
"""Attribute of an `scf.for` that is too short for threads, but has independent iterations."""


def is_worth_threads(sizes: Sequence[Size], cycles: float) -> bool:
    """True if a loop nest should run on several threads.

    Args:
        sizes: trip counts of the loops.
        cycles: estimated cycles of the whole nest, for the hints of symbolic sizes.
    """
    return cycles >= ASSUMED.parallel_cycles or any(isinstance(size, Dim) for size in sizes)


def decide_in_calls(loop: scf.ParallelOp, sizes: Sequence[Size], cycles: float) -> None:
    """Sets the minimum number of iterations for which a call runs a loop nest on several
    threads.

    Args:
        loop: the loop nest.
        sizes: as for `is_worth_threads`.
        cycles: as for `is_worth_threads`, but of whole blocks if iterations are blocks, since the
            first call may fill a small part of one.
    """
    if not any(isinstance(size, Dim) for size in sizes) or cycles <= 0:
        return
    iterations = hint(math.prod(sizes))
    fewest = max(2, math.ceil(ASSUMED.parallel_cycles * iterations / cycles))
    loop.attributes[FEWEST] = IntegerAttr(fewest, IndexType())
