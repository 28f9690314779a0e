"""Choice of the strategy for a contraction's loops."""

from __future__ import annotations

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.lowering.linalg_to_loops.blocking import (
    Wanted,
    choose_blocking,
    line_blocking,
    panel_blocking,
)
from byoc_mlir.lowering.linalg_to_loops.code import LoopWriter
from byoc_mlir.lowering.linalg_to_loops.contraction import Contraction
from byoc_mlir.lowering.linalg_to_loops.lines import LineWriter
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import MicroKernels
from byoc_mlir.lowering.linalg_to_loops.packing import PackingWriter
from byoc_mlir.lowering.linalg_to_loops.panels import PanelWriter
from byoc_mlir.lowering.linalg_to_loops.transposing import TransposingWriter, is_transposed
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
    cycles = _cycles(contraction)
    parallel = threads and is_worth_threads([contraction.nest.iterations], cycles)
    if contraction.panel_columns:
        blocking = panel_blocking(contraction, vector_bits, wanted, threads=parallel)
        PanelWriter(code, contraction, kernels, blocking).write(cycles, threads=parallel)
    elif contraction.is_of_lines:
        blocking = line_blocking(contraction, vector_bits, wanted, threads=parallel)
        LineWriter(code, contraction, kernels, blocking).write(cycles, threads=parallel)
    else:
        blocking = choose_blocking(contraction, vector_bits, wanted, threads=parallel)
        writer = TransposingWriter if is_transposed(contraction) else PackingWriter
        writer(code, contraction, kernels, blocking).write(cycles, threads=parallel)


def _cycles(contraction: Contraction) -> float:
    """Returns an estimate of the cycles for the MACs or, if rows are few, for reading the
    matrix.
    """
    nest = contraction.nest
    read = byte_width(nest.accesses[1].element_type) / hint(contraction.rows)
    each = max(1 / ASSUMED.loop_products, read / ASSUMED.streamed_bytes)
    return hint(nest.iterations) * each
