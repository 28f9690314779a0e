"""Which blocks a product is cut into, each one call: what was measured to be the fastest.

OpenBLAS packs both matrices in each call, but for calls so small that its kernels read them where
they are. Where that pays depends on the processor, and on how many rows a packed matrix serves.
"""

from __future__ import annotations

from byoc_mlir.backends.openblas.library import load_library
from byoc_mlir.backends.openblas.products import BatchedGemm, Block
from byoc_mlir.backends.openblas.trials import BlockedWay, Matrix, seconds_of
from byoc_mlir.calibration import Calibration, Measurement, current_calibration
from byoc_mlir.errors import ByocError

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
    calibration = current_calibration()
    whole = Block(product.rows, product.units, product.depth)
    key = f"openblas/{whole}{' panels' if has_panels else ''}"
    calibration.view(_check_group)
    known = calibration.find(key)
    if known is not None and calibration.is_kept and known.source != load_library().configuration:
        known = None  # another build measured it
    if known is None and calibration.may_measure:
        block = _fastest(whole, has_panels)
        text = "" if block is None else str(block)
        known = Measurement(key, "blocks", load_library().configuration, text)
        calibration.add(known)
    return _block(known) if known is not None and known.text else None


def _check_group(calibration: Calibration) -> None:
    """
    Raises:
        ByocError: a file has something else than blocks.
    """
    for one in list(calibration.group("openblas").values()):
        if one.text:
            _block(one)


def _block(known: Measurement) -> Block:
    """
    Raises:
        ByocError: a file has something else.
    """
    try:
        return Block.of(known.text)
    except ValueError as error:
        raise ByocError(f"the measurement '{known.key}': {error}") from error


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
