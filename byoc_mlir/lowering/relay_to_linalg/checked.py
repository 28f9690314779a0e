"""Values that are checked at run time."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.dialects.relay.checked import CheckedOp
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings


def _lower_checked(op: CheckedOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    b.add(host.CheckOp(op.found, op.what, op.least, op.most))
    return [op.data]


FUNCTIONS: Lowerings = {CheckedOp: _lower_checked}
