"""Sizes as values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import size as relay
from byoc_mlir.dialects.relay.base import ints, size_list, tensor_type
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.computed_types import Kind, signless
from byoc_mlir.lowering.relay_to_linalg.kernel import Kernel
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars


def _lower_sizes(op: relay.SizesOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op)
    shape, result = ints(op.newshape), k.outputs[0]
    for position, value in zip(np.ndindex(*shape), size_list(op.values), strict=True):
        result[position] = k.constant(value, result.type)
    return k.finish(b)


def _lower_arange(op: relay.ArangeOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    start, _, step = size_list(op.span)
    type_ = tensor_type(op.output)

    def body(s: Scalars) -> SSAValue:
        scaled = s.emit(arith.MuliOp(s.index(0), s.size(step, i64)))
        number = s.emit(arith.AddiOp(scaled, s.size(start, i64)))
        return s.cast(number, i64, signless(type_.element_type))

    return [b.generic([], type_, body, kind=Kind.SIGNED)]


FUNCTIONS: Lowerings = {
    relay.ArangeOp: _lower_arange,
    relay.SizesOp: _lower_sizes,
}
