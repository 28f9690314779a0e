"""Choice of the blocks of a matmul, one call each: the fastest ones measured.

OpenBLAS packs both matrices in each call, except in calls so small that its kernels read the
matrices in place. The profitability depends on the processor and on the number of rows that use a
packed matrix.
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
"""Candidates of up to about a million MACs, the most for which no build of OpenBLAS packs."""

_CLEARLY = 0.95
"""Maximum time of the blocks, as a fraction of the time of one call."""

_MOST_ROWS = 512
"""Maximum number of rows; for more rows, the cost of packing is negligible."""

_MATRIX_ELEMENTS = 1 << 21
"""Number of elements of matrix B to measure; they exceed the L2 cache of a core."""


def block_for(product: BatchedGemm, *, may_pack: bool = False) -> Block | None:
    """Returns the block size of a matmul, or `None` for one call.

    `None` means that one call is as fast, or that the answer is unknown and may not be measured.

    Args:
        may_pack: True if a matrix B that is stored transposed may be packed into panels in advance.
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
    """Checks that the calibration of OpenBLAS holds blocks only.

    Raises:
        ByocError: an entry of the file is no block.
    """
    for one in list(calibration.group("openblas").values()):
        if one.text:
            _block(one)


def _block(known: Measurement) -> Block:
    """Returns the block of a measurement.

    Raises:
        ByocError: the entry of the file is no block.
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
