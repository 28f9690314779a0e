"""Pools that also tell where the maximum was, as kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import pool as relay
from byoc_mlir.dialects.relay.base import ints
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.kernel import Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.scalars import bounds


def _lower_max_pool_with_argmax(
    op: relay.MaxPoolWithArgmaxOp, b: LinalgBuilder
) -> Sequence[SSAValue]:
    k = Kernel(op)
    strides, padding, dilation = op.checked_window()
    pool, rank = ints(op.pool_size), op.SPATIAL_RANK
    batch, channels, *sizes = k.inputs[0].sizes
    planes = batch * channels
    data = k.inputs[0].reshaped(planes, *sizes)
    values, indices = (output.reshaped(planes, *output.sizes[2:]) for output in k.outputs)
    steps = [
        math.prod(sizes[:axis] if op.column_major.value.data else sizes[axis + 1 :])
        for axis in range(rank)
    ]
    with k.loops(values.sizes, cost=4 * math.prod(pool)) as (plane, *place):
        best = k.variable(k.constant(bounds(data.type)[0], data.type))
        where = k.variable(k.constant(-1, i64))
        with k.sequential(pool) as tap:
            at = [
                k.index(place[axis]) * strides[axis]
                + k.index(tap[axis]) * dilation[axis]
                - padding[axis]
                for axis in range(rank)
            ]
            inside: Num | None = None
            position = k.index(plane) * math.prod(sizes)
            for axis in range(rank):
                within = (at[axis] >= 0) & (at[axis] < sizes[axis])
                inside = within if inside is None else inside & within
                position = position + at[axis] * steps[axis]
            assert inside is not None
            with k.when(inside):
                value = data[(plane, *at)]
                with k.when((value > best.value) | (where.value < 0)):
                    best.value = value
                    where.value = position.to(i64)
        values[(plane, *place)] = best.value
        indices[(plane, *place)] = where.value
    return k.finish(b)


FUNCTIONS: Lowerings = dict.fromkeys(
    relay.MAX_POOL_WITH_ARGMAX.values(), _lower_max_pool_with_argmax
)
