"""The pass `convert-linalg-to-loops`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass

from byoc_mlir.lowering.linalg_to_loops.code import Code
from byoc_mlir.lowering.linalg_to_loops.nest import nest_of
from byoc_mlir.lowering.linalg_to_loops.simple import emit_nest


@dataclass(frozen=True)
class ConvertLinalgToLoops(ModulePass):
    """Lowers `linalg` ops on memrefs, in kernels, to loops over flat buffers.

    Options:
        threads: write loops with enough work as `scf.parallel`.

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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.body.blocks:
                _lower_function(function, self.threads)


def _lower_function(function: func.FuncOp, threads: bool) -> None:
    block = function.body.block
    views: list[memref.ReinterpretCastOp] = []
    for op in tuple(block.ops):
        if isinstance(op, memref.ReinterpretCastOp):
            views.append(op)
        elif isinstance(op, linalg.GenericOp):
            emit_nest(Code(block, op), nest_of(op), threads=threads)
            block.erase_op(op)
    for view in reversed(views):
        if not view.result.first_use:
            block.erase_op(view)
