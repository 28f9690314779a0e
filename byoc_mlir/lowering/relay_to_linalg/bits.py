"""Ops on the bits of elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import bits as relay
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.computed_types import signless
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars


def _lower_reinterpret(op: relay.ReinterpretOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    target = signless(op.dtype)

    def body(s: Scalars, x: SSAValue) -> SSAValue:
        return x if x.type == target else s.emit(arith.BitcastOp(x, target))

    return [b.elementwise([op.data], tensor_type(op.output), body)]


FUNCTIONS: Lowerings = {relay.ReinterpretOp: _lower_reinterpret}
