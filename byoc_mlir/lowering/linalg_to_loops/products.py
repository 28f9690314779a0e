"""Choice of the strategy for a contraction's loops."""

from __future__ import annotations

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.lowering.linalg_to_loops.blocking import (
    Blocking,
    Wanted,
    choose_blocking,
    line_blocking,
    panel_blocking,
)
from byoc_mlir.lowering.linalg_to_loops.code import LoopWriter
from byoc_mlir.lowering.linalg_to_loops.contraction import Contraction
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import MicroKernels
from byoc_mlir.lowering.linalg_to_loops.tiled import TiledWriter
from byoc_mlir.lowering.threads import is_worth_threads
from byoc_mlir.lowering.to_llvm.types import byte_width


def emit_contraction(
    code: LoopWriter,
    contraction: Contraction,
    kernels: MicroKernels,
    *,
    vector_bits: int,
    threads: bool,
    schedule: str = "",
) -> None:
    """Emits the loops of a contraction and its epilogues.

    Args:
        schedule: one of `PRODUCT_SCHEDULES`, or empty for the default blocking.
    """
    wanted = Wanted.of(schedule)
    rows = hint(contraction.rows)
    cycles = _cycles(contraction, rows)
    parallel = threads and is_worth_threads([contraction.nest.iterations], cycles)
    if contraction.panel_columns:
        from byoc_mlir.lowering.linalg_to_loops.panels import PanelWriter

        blocking = panel_blocking(contraction, vector_bits, wanted, threads=parallel)
        writer = PanelWriter(code, contraction, kernels, blocking)
        cycles = _cycles(contraction, blocking.whole_rows(contraction.rows))
    elif contraction.is_of_lines:
        from byoc_mlir.lowering.linalg_to_loops.lines import LineWriter

        blocking = line_blocking(contraction, vector_bits, wanted, threads=parallel)
        writer = LineWriter(code, contraction, kernels, blocking)
    else:
        blocking = choose_blocking(contraction, vector_bits, wanted, threads=parallel)
        writer = _writer(code, contraction, kernels, blocking)
        cycles = _cycles(contraction, blocking.whole_rows(contraction.rows))
    writer.write(cycles, threads=parallel)


def _writer(
    code: LoopWriter, contraction: Contraction, kernels: MicroKernels, blocking: Blocking
) -> TiledWriter:
    """Returns the strategy for a contraction whose `b` was not packed at compile time."""
    from byoc_mlir.lowering.linalg_to_loops.packing import PackingWriter
    from byoc_mlir.lowering.linalg_to_loops.transposing import TransposingWriter, is_transposed

    writer = TransposingWriter if is_transposed(contraction) else PackingWriter
    return writer(code, contraction, kernels, blocking)


def _cycles(contraction: Contraction, rows: int) -> float:
    """Returns an estimate of the cycles for the MACs or, if rows are few, for reading the
    matrix.
    """
    nest = contraction.nest
    read = byte_width(nest.accesses[1].element_type) / rows
    each = max(1 / ASSUMED.loop_products, read / ASSUMED.streamed_bytes)
    return hint(nest.iterations) // hint(contraction.rows) * rows * each
