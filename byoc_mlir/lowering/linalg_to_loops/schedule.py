"""Schedules: names of loops other than the default, as the IR records them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.kernels.tuned import USUAL
from byoc_mlir.lowering.linalg_to_loops.blocked import (
    ACROSS,
    ALONG,
    block_schedules,
    loses_lines,
)
from byoc_mlir.lowering.linalg_to_loops.blocking import PRODUCT_SCHEDULES
from byoc_mlir.lowering.linalg_to_loops.contraction import is_product_sum
from byoc_mlir.lowering.linalg_to_loops.nest import Nest, nest_of

SCHEDULE = "schedule"
"""Attribute of a `linalg.generic` with the schedule of its loops; absent for the default."""

_ALL = (ALONG, ACROSS, *PRODUCT_SCHEDULES)


def schedule_of(op: linalg.GenericOp) -> str:
    """Returns the schedule of an op; "" for the default.

    Raises:
        PassFailedException: the schedule is unknown.
    """
    found = op.attributes.get(SCHEDULE)
    if found is None:
        return ""
    if not isinstance(found, StringAttr) or found.data not in _ALL:
        raise PassFailedException(f"schedule is {found}, accepted are {', '.join(_ALL)}")
    return found.data


def schedules_for(op: linalg.GenericOp) -> Sequence[str]:
    """Returns the schedules that an op supports, the default one first."""
    nest = nest_of(op)
    if nest.iterations == 0:
        return (USUAL,)
    if is_product_sum(op):
        distances = (one for access in nest.accesses for one in access.coefficients)
        is_known = not is_symbolic((*nest.sizes, *distances))
        return (USUAL, *PRODUCT_SCHEDULES) if is_known else (USUAL,)
    return (ALONG, USUAL, ACROSS) if loses_lines(nest) else (USUAL, *block_schedules(nest))


def described(op: linalg.GenericOp) -> str:
    """Returns a string of the sizes, types and strides that determine the choice of a schedule."""
    nest: Nest = nest_of(op)
    accesses = [f"{one.element_type}{one.coefficients}" for one in nest.accesses]
    ops = "+".join(inner.name.partition(".")[2] for inner in nest.body.ops)
    return f"{ops}{nest.sizes}{sorted(nest.reductions)}{','.join(accesses)}".replace(" ", "")
