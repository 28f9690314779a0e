"""The pass `expand-memref-copy`."""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from byoc_mlir.lowering.symbols import ops_to_lower
from byoc_mlir.lowering.to_llvm.memref import memref_type
from byoc_mlir.lowering.to_llvm.types import is_contiguous


class ExpandMemrefCopy(ModulePass):
    """Converts each `memref.copy` whose source or target has gaps to loops.

    Other copies become a memcpy later.

    ```mlir
    memref.copy %a, %b : memref<4x3xf32, strided<[8, 1]>> to memref<4x3xf32>
    ```
    becomes
    ```mlir
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %j = %c0 to %c3 step %c1 {
        %0 = memref.load %a[%i, %j] : memref<4x3xf32, strided<[8, 1]>>
        memref.store %0, %b[%i, %j] : memref<4x3xf32>
      }
    }
    ```
    """

    name = "expand-memref-copy"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        copies = [inner for inner in ops_to_lower(op) if isinstance(inner, memref.CopyOp)]
        for copy in copies:
            if not _is_memcpy(copy):
                _expand(copy)


def _is_memcpy(op: memref.CopyOp) -> bool:
    return is_contiguous(memref_type(op.source)) and is_contiguous(memref_type(op.destination))


def _expand(op: memref.CopyOp) -> None:
    builder = Builder(InsertPoint.before(op))
    zero, one = _index(builder, 0), _index(builder, 1)
    sizes = [_index(builder, size) for size in memref_type(op.source).get_shape()]
    indices: list[SSAValue] = []
    for size in sizes:
        loop = scf.ForOp(zero, size, one, [], Region(Block(arg_types=[IndexType()])))
        loop.body.block.add_op(scf.YieldOp())
        builder.insert(loop)
        indices.append(loop.body.block.args[0])
        builder = Builder(InsertPoint.at_start(loop.body.block))
    element = memref.LoadOp.get(op.source, indices)
    builder.insert(element)
    builder.insert(memref.StoreOp.get(element, op.destination, indices))
    op.detach()
    op.erase()


def _index(builder: Builder, value: int) -> SSAValue:
    return builder.insert(arith.ConstantOp.from_int_and_width(value, IndexType())).result
