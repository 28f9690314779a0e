"""GEMMs and convolutions that backends compute faster in lower precision than `f32`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import BlockArgument, Operation

from byoc_mlir.backends import get_backend
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import relay_name, tensor_type
from byoc_mlir.dialects.relay.elementwise import BroadcastOp, UnaryOp, WhereOp
from byoc_mlir.dialects.relay.nn import BiasAddOp
from byoc_mlir.transforms.blocks import is_constant
from byoc_mlir.transforms.work import multiplications

_FUSED = (UnaryOp, BroadcastOp, BiasAddOp, WhereOp)
"""Ops that a composite may contain in addition to its GEMM: functions of the result's elements."""


@dataclass(frozen=True)
class ProfitableGemm:
    """GEMM or convolution for which the precision pays."""

    op: Operation
    operands: tuple[int, ...]
    """Indices of the multiplied operands, among the operands of the block's op: of the GEMM or its
    composite."""


class ProfitableGemms:
    """GEMMs and convolutions that backends compute faster in another precision.

    Args:
        precision: argument of `Backend.profitability`.
        targets: names of the backends.
        exact: names of nodes that stay in `f32`.
        refuses: function that returns why an op must stay in `f32` regardless of its speed, or
            `None`; the op is a GEMM, or a composite with one.
    """

    def __init__(
        self,
        precision: str,
        targets: Sequence[str],
        exact: Collection[str] = (),
        refuses: Callable[[Operation, Operation], str | None] = lambda op, product: None,
    ):
        self._backends, self._refuses = list(map(get_backend, targets)), refuses
        self._exact = frozenset(exact)
        self._profitability = {one.name: one.profitability(precision) for one in self._backends}
        self.kept_float: dict[str, str] = {}
        """Reasons why nodes stay in `f32` although the precision pays for their kind of op."""

    def product(self, op: Operation) -> ProfitableGemm | None:
        """Returns the profitable `f32` GEMM in an op: the op itself, or an op in its composite.

        Returns `None` if the op stays in `f32`; `kept_float` may have the reason.
        """
        product = self._candidate(op)
        if product is None or any(tensor_type(one).element_type != f32 for one in product.operands):
            return None
        operands = range(len(op.operands))
        if product is not op:
            arguments = [one for one in product.operands if isinstance(one, BlockArgument)]
            operands = [one.index for one in arguments]
            if len(operands) < len(product.operands):
                return None
        return None if self._stays(op, product) else ProfitableGemm(product, tuple(operands))

    def follows(self, op: CompositeOp) -> bool:
        """True if a composite without such a GEMM may read and write the lower precision."""
        known = self._profitability.get(op.compiler)
        return known is not None and op.composite_name.data in known.following

    def _candidate(self, op: Operation) -> Operation | None:
        taker = self._taker(op)
        known = self._profitability[taker].ops if taker in self._profitability else frozenset[str]()
        if not isinstance(op, CompositeOp):
            return op if relay_name(op) in known else None
        found = [one for one in op.ops() if relay_name(one) in known]
        others = [one for one in op.ops() if one not in found and not is_constant(one)]
        if len(found) != 1 or len(op.outputs) != 1:
            return None
        return found[0] if all(isinstance(one, _FUSED) for one in others) else None

    def _stays(self, op: Operation, product: Operation) -> bool:
        """True if an op with a GEMM must stay in `f32`; records the reason."""
        gains = self._profitability[self._taker(op)]
        reason = (
            self._asked_for(product)
            or self._refuses(op, product)
            or _why_too_small(product, gains.least)
            or gains.faster_in_f32(op)
        )
        if reason is not None:
            self.kept_float |= dict.fromkeys(node_names(op), reason)
        return reason is not None

    def _asked_for(self, product: Operation) -> str | None:
        return None if self._exact.isdisjoint(node_names(product)) else "asked for"

    def _taker(self, op: Operation) -> str:
        """Returns the name of the backend that runs an op, if it profits from the precision, else
        "".
        """
        if isinstance(op, CompositeOp):
            return op.compiler
        if any(relay_name(op) in one.ops for one in self._profitability.values()):
            for backend in self._backends:
                rule = backend.op_rules().get(relay_name(op))
                if rule is not None and rule(op) is None:
                    return backend.name
        return ""


def why_unprofitable(precision: str, targets: Sequence[str]) -> str | None:
    """Returns why no target computes anything faster in a precision, or `None` if one does."""
    answers = {target: get_backend(target).profitability(precision) for target in targets}
    if any(answer.ops for answer in answers.values()):
        return None
    reasons = [f"{target}: {answer.reason}" for target, answer in answers.items()]
    return "; ".join(reasons) or "the host alone computes nothing faster in it"


def _why_too_small(product: Operation, least: int) -> str | None:
    if not all(tensor_type(value).has_static_shape() for value in product.operands):
        return None
    count = multiplications(product)
    return f"{count:,} MACs do not pay" if count < least else None
