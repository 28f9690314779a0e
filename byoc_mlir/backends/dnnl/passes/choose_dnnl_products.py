"""The pass `choose-dnnl-products`: the primitive of each matmul, and the packing of its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.costs.costs import Costs
from byoc_mlir.backends.dnnl.dialect.base import like
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass, replace_located
from byoc_mlir.backends.dnnl.primitives.weighted import is_packable_matrix
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.limits import in_time
from byoc_mlir.onednn.engine import openmp_threads

_PACKINGS = ("any", "ba")
"""Packings, the usually faster one first."""


@dataclass(frozen=True)
class ChooseDnnlProducts(RegionPass):
    """Chooses oneDNN's fastest primitive for each matmul of rows and a constant matrix.

    The candidates are a matmul with column-major weights, and a matmul or an inner product with
    weights in oneDNN's preferred layout. The fastest one depends on the shapes, the instruction set
    and the number of threads, by factors of up to four. Weights in memory that the caller owns are
    not packed.

    Options:
        threads: the OpenMP threads that will run the region.

    ```mlir
    %0 = dnnl.matmul %x, %w {transpose_b = true} : …
    ```
    becomes one of
    ```mlir
    %0 = dnnl.matmul %x, %w {transpose_b = true, packing = "ba"} : …
    %0 = dnnl.inner_product %x, %w : …
    ```
    """

    name = "choose-dnnl-products"
    threads: int = 1

    def change(self, region: FuncOp) -> None:
        costs = Costs()
        with openmp_threads(self.threads):
            for op in in_time(region.body.block.ops):
                if isinstance(op, dnnl.MatmulOp) and _is_open(op):
                    _choose(op, costs)


def _is_open(op: dnnl.MatmulOp) -> bool:
    """True if the weights are a constant that may be packed into any layout."""
    return len(shape_of(op.output)) == 2 and is_packable_matrix(op.primary[1])


def _choose(op: dnnl.MatmulOp, costs: Costs) -> None:
    times = {packing: _time(op, costs, packing) for packing in _PACKINGS}
    best = min(times, key=lambda packing: times[packing])
    op.packing = StringAttr(best)
    if not op.transpose_b.value.data or op.transpose_a.value.data:
        return
    bias, view = _vector(op.bias)
    operands = [*op.primary[:2], *bias, *op.post_op_operands]
    other = dnnl.InnerProductOp(operands, post_ops=op.post_ops, element=op.element)
    if costs.op(other, dnnl.layout_of) >= times[best]:
        other.erase()
        for one in view:
            one.erase()
        return
    replace_located(op, *view, other)


def _time(op: dnnl.MatmulOp, costs: Costs, packing: str) -> float:
    op.packing = StringAttr(packing)
    return costs.op(op, dnnl.layout_of)


def _vector(bias: SSAValue | None) -> tuple[Sequence[SSAValue], Sequence[dnnl.ViewOp]]:
    """Adds a view of a matmul's bias `[1, N]` as an inner product's `[N]`."""
    if bias is None:
        return (), ()
    view = dnnl.ViewOp(bias, result_types=[like(bias, shape_of(bias)[-1:])])
    return (view.output,), (view,)
