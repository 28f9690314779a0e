"""Which blocks a product is cut into, each one call: what was measured to be the fastest.

OpenBLAS packs both matrices in each call, but for calls so small that its kernels read them where
they are. Where that pays depends on the processor, and on how many rows a packed matrix serves.
"""

from __future__ import annotations

from typing import Any

from byoc_mlir.backends.openblas.products import BatchedGemm, Block
from byoc_mlir.backends.openblas.trials import BlockedWay, Matrix, seconds_of
from byoc_mlir.kernels.tuned import Tuned
from byoc_mlir.rates import current_rates

_CANDIDATES = (
    Block(64, 96, 128),
    Block(64, 96, 192),
    Block(64, 64, 256),
    Block(16, 128, 192),
    Block(16, 96, 384),
    Block(16, 64, 512),
)
"""Up to a million multiplications: about the most for which no build of OpenBLAS packs."""

_CLEARLY = 0.95
"""Of the time of one call, the most that blocks may take."""

_MOST_ROWS = 512
"""With more of them, packing takes next to nothing."""

_MATRIX_ELEMENTS = 1 << 21
"""Of the second matrix, what is measured: more than the second cache of a core holds."""


def block_for(product: BatchedGemm, *, may_pack: bool = False) -> Block | None:
    """The blocks that a product is cut into; `None` where one call is as fast, or where that is
    not known and may not be measured.

    Args:
        may_pack: whether a second matrix that is stored transposed may be put in panels in advance.
    """
    has_panels = product.transposes == (False, True) and may_pack
    is_as_stored = product.transposes == (False, False)
    if product.is_vector or not (has_panels or is_as_stored) or product.rows > _MOST_ROWS:
        return None
    rates = current_rates()
    known = rates.part("openblas", _known).choices
    whole = Block(product.rows, product.units, product.depth)
    problem = f"{whole}{' panels' if has_panels else ''}"
    if problem not in known and rates.may_measure:
        block = _fastest(whole, has_panels)
        known[problem] = "" if block is None else str(block)
    text = known.get(problem)
    return Block.of(text) if text else None


def _known(document: Any) -> Tuned:
    """What was measured so far: by product the blocks, or nothing for one call.

    Raises:
        ValueError, TypeError, AttributeError: a file has something else.
    """
    found = Tuned.of_json(document)
    for text in filter(None, found.choices.values()):
        Block.of(text)
    return found


def _fastest(whole: Block, has_panels: bool) -> Block | None:
    part = Block(whole.rows, min(whole.units, _MATRIX_ELEMENTS // whole.depth or 1), whole.depth)
    blocks = dict.fromkeys(one.within(part) for one in _CANDIDATES)
    if not has_panels and part in blocks:
        return None  # one call is such a block
    one_way, other = (Matrix.TRANSPOSED, Matrix.PANELS) if has_panels else (Matrix.ROWS,) * 2
    ways = (BlockedWay(part, one_way), *(BlockedWay(block, other) for block in blocks))
    one_call, *times = seconds_of(part, ways, _MATRIX_ELEMENTS)
    shortest, best = min(zip(times, blocks, strict=True), key=lambda pair: pair[0])
    if shortest >= _CLEARLY * one_call:
        return None
    return best
