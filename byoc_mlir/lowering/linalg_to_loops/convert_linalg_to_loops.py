"""The pass `convert-linalg-to-loops`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block
from xdsl.passes import ModulePass

from byoc_mlir.dialects.dynamic_buffers import View
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.linalg_to_loops.blocking import (
    Blocking,
    Wanted,
    choose_blocking,
    line_blocking,
    panel_blocking,
)
from byoc_mlir.lowering.linalg_to_loops.code import LoopWriter
from byoc_mlir.lowering.linalg_to_loops.contraction import (
    Contraction,
    contraction_of,
    fill_value,
    is_in_place,
    is_product_sum,
    is_zero_fill,
)
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import MicroKernels
from byoc_mlir.lowering.linalg_to_loops.nest import nest_of
from byoc_mlir.lowering.linalg_to_loops.rows import emit_rows, nests_in_rows
from byoc_mlir.lowering.linalg_to_loops.schedule import schedule_of
from byoc_mlir.lowering.linalg_to_loops.simple import emit_nest, emit_window, is_window
from byoc_mlir.lowering.linalg_to_loops.tiled import TiledWriter
from byoc_mlir.lowering.threads import is_worth_threads
from byoc_mlir.lowering.to_llvm.types import byte_width


@dataclass(frozen=True)
class ConvertLinalgToLoops(ModulePass):
    """Lowers `linalg` ops on memrefs, in kernels, to loops over flat buffers.

    Options:
        threads: true to emit loops with enough work as `scf.parallel`.
        vector_bits: width of the target's vector registers in bits.

    ```mlir
    linalg.generic … ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>) attrs = {doc = "relu"} …
    // becomes
    %a = memref.reinterpret_cast %x to offset: [0], sizes: [32], strides: [1] : …
    scf.for %i = %c0 to %c32 step %c1 {
      %0 = memref.load %a[%i] : memref<32xf32>
      %1 = arith.maximumf %0, %zero : f32
      memref.store %1, %b[%i] : memref<32xf32>
    }
    ```
    """

    name = "convert-linalg-to-loops"

    threads: bool = True
    vector_bits: int = 256

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with asking_of(op):
            kernels = MicroKernels()
            for function in in_time(op.ops):
                if isinstance(function, func.FuncOp) and function.body.blocks:
                    _FunctionLowering(function.body.block, self, kernels).run()
            op.body.block.add_ops(kernels.functions)


class _FunctionLowering:
    def __init__(self, block: Block, options: ConvertLinalgToLoops, kernels: MicroKernels):
        self._block = block
        self._options = options
        self._kernels = kernels

    def run(self) -> None:
        """Lowers the `linalg` ops of the block."""
        ops = [op for op in self._block.ops if isinstance(op, linalg.GenericOp)]
        views = [op for op in self._block.ops if isinstance(op, View)]
        position = 0
        while position < len(ops):
            group = ops[position:]
            taken = self._contraction(group) or self._filled_window(group) or self._rows(group)
            if not taken:
                code = LoopWriter(self._block, group[0])
                nest, schedule = nest_of(group[0]), schedule_of(group[0])
                emit_nest(code, nest, threads=self._options.threads, schedule=schedule)
                taken = 1
            for op in reversed(group[:taken]):
                self._block.erase_op(op)
            position += taken
        for view in reversed(views):
            if not view.result.first_use:
                self._block.erase_op(view)

    def _contraction(self, ops: Sequence[linalg.GenericOp]) -> int:
        """Lowers the contraction at the start of `ops`, with followers; returns their number."""
        first = 1 if is_zero_fill(ops[0]) and len(ops) > 1 else 0
        op = ops[first]
        if not is_product_sum(op) or (first and ops[0].outputs[0] is not op.outputs[0]):
            return 0
        followers = list(
            itertools.takewhile(lambda o: is_in_place(o, op.outputs[0]), ops[first + 1 :])
        )
        fresh = first == 1
        contraction = contraction_of(op, fresh, followers)
        if contraction is None:
            followers = []
            contraction = contraction_of(op, fresh, followers)
        if contraction is None:
            return 0
        emit_contraction(
            LoopWriter(self._block, op),
            contraction,
            self._kernels,
            vector_bits=self._options.vector_bits,
            threads=self._options.threads,
            schedule=schedule_of(op),
        )
        return first + 1 + len(followers)

    def _rows(self, ops: Sequence[linalg.GenericOp]) -> int:
        """Lowers the first of `ops` that can run row by row; returns the number of ops."""
        nests = nests_in_rows(ops)
        if nests:
            emit_rows(LoopWriter(self._block, ops[0]), nests, threads=self._options.threads)
        return len(nests)

    def _filled_window(self, ops: Sequence[linalg.GenericOp]) -> int:
        """Lowers a fill at the start of `ops` and its window reduction; returns their number."""
        if len(ops) == 1 or ops[0].outputs[0] is not ops[1].outputs[0]:
            return 0
        start, nest = fill_value(ops[0]), nest_of(ops[1])
        if start is None or nest.iterations == 0 or not is_window(nest):
            return 0
        emit_window(LoopWriter(self._block, ops[1]), nest, start, threads=self._options.threads)
        return 2


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
