"""The pass `pad-in-one-kernel`."""

from __future__ import annotations

import math

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.linalg_to_loops.contraction import fill_value
from byoc_mlir.lowering.relay_to_linalg.builder import (
    LinalgBuilder,
    slice_offsets,
    static_ints,
)
from byoc_mlir.lowering.relay_to_linalg.kernel import Kernel, Num


class PadInOneKernel(ModulePass):
    """Turns an insertion into a filled tensor into one kernel, which writes each element once.

    The host fills the border and copies the rest, which would be several launches.

    ```mlir
    %f = linalg.generic … outs(%e : tensor<6xf32>) attrs = {doc = "fill"} { … }
    %r = tensor.insert_slice %x into %f[1] [4] [1] : tensor<4xf32> into tensor<6xf32>
    // becomes
    %r = host.kernel "insert_slice" %x : (tensor<4xf32>) -> tensor<6xf32> { … }
    ```
    """

    name = "pad-in-one-kernel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in host_blocks(op):
            for inner in in_time(block.ops):
                if isinstance(inner, tensor.InsertSliceOp):
                    value = _background(inner)
                    if value is not None:
                        _rewrite(inner, value)


def _background(op: tensor.InsertSliceOp) -> float | None:
    """Returns the number around the inserted elements; `None` for other insertions."""
    fill = op.dest.owner
    if not isinstance(fill, linalg.GenericOp) or set(static_ints(op.static_strides)) != {1}:
        return None
    if math.prod(shape_of(op.source)) == 0:
        return None
    value = fill_value(fill)
    return value.value.data if isinstance(value, FloatAttr | IntegerAttr) else None


def _rewrite(op: tensor.InsertSliceOp, value: float) -> None:
    k = Kernel(op, [op.source], [tensor_type(op.result)])
    (source,), (target,) = k.inputs, k.outputs
    sizes = shape_of(op.source)
    with k.loops(target.sizes) as at:
        inside: Num | None = None
        places: list[Num] = []
        for position, offset, size in zip(at, slice_offsets(op), sizes, strict=True):
            place = k.index(position) - k.index(offset)
            within = (place >= 0) & (place < size)
            inside = within if inside is None else inside & within
            places.append(place.within(0, size - 1))
        assert inside is not None
        element = source[places]
        target[at] = k.select(inside, element, k.constant(value, element.type))
    fill = op.dest.owner
    Rewriter.replace_op(op, (), k.finish(LinalgBuilder(op)))
    assert isinstance(fill, linalg.GenericOp)
    if not fill.results[0].first_use:
        Rewriter.erase_op(fill)
