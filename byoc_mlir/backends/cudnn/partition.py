"""Convolutions that cuDNN takes, and composites that it runs as one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from xdsl.ir import Operation

from byoc_mlir.backends.cudnn.convolutions import FusedConvolution, described, is_supported_type
from byoc_mlir.backends.cudnn.plans import plan_of
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.dialects.relay.nn import BiasAddOp
from byoc_mlir.dialects.relay.window import ConvOp, ConvTransposeOp
from byoc_mlir.errors import BackendError
from byoc_mlir.patterns import CompositePattern, Match, Pattern, is_op, wildcard

_CONVOLUTIONS = tuple(f"conv{rank}d" for rank in (1, 2, 3))
ANCHORS = (*_CONVOLUTIONS, *(f"{name}_transpose" for name in _CONVOLUTIONS))
"""Names of the convolutions without `nn.`."""

_FOLLOWING = (
    ("bias", "residual", "relu"),
    ("bias", "residual"),
    ("residual", "relu"),
    ("bias", "relu"),
    ("residual",),
    ("bias",),
    ("relu",),
)
"""Parts after a convolution, the longest first. The sum of bias and residual has any order."""


@cache
def patterns() -> Sequence[CompositePattern]:
    """Returns the table of patterns, the longest ones first."""
    return tuple(_rows())


def _rows() -> Iterator[CompositePattern]:
    for parts in _FOLLOWING:
        for anchor in _CONVOLUTIONS:
            name = "_".join((f"cudnn.{anchor}", *parts))
            yield CompositePattern(name, _pattern(anchor, parts), _check)


def _pattern(anchor: str, parts: Sequence[str]) -> Pattern:
    whole: Pattern = is_op(f"nn.{anchor}")(wildcard(), wildcard()).named("anchor")
    if "bias" in parts:
        whole = is_op("nn.bias_add")(whole, wildcard()).named("bias")
    if "residual" in parts:
        whole = whole + wildcard().named("residual")
    return is_op("nn.relu")(whole).named("relu") if "relu" in parts else whole


def _check(match: Match) -> str | None:
    anchor = match.op("anchor")
    assert isinstance(anchor, ConvOp)
    if "bias" in match:
        bias = match.op("bias")
        assert isinstance(bias, BiasAddOp)
        if bias.positive_axis != 1:
            return f"only a bias of axis 1 is supported, found {bias.positive_axis}"
    has_residual = "residual" in match
    if has_residual and shape_of(match["residual"]) != shape_of(anchor.output):
        return f"{match['residual'].type} would have to be broadcast"
    return _types_refused(match.ops) or _planned(
        described(
            anchor,
            has_bias="bias" in match,
            has_residual=has_residual,
            has_relu="relu" in match,
        )
    )


def refused(op: Operation) -> str | None:
    """Accepts convolutions for which cuDNN has a plan."""
    assert isinstance(op, ConvOp | ConvTransposeOp)
    return _types_refused((op,)) or _planned(described(op))


def _types_refused(ops: Sequence[Operation]) -> str | None:
    """Accepts ops whose operands and results are of one type, `f32` or `f16`, and not empty."""
    values = [value for op in ops for value in (*op.operands, *op.results)]
    elements = {tensor_type(value).element_type for value in values}
    if len(elements) > 1 or not all(map(is_supported_type, elements)):
        return "all operands and results must be f32, or all f16"
    if 0 in (size for value in values for size in shape_of(value)):
        return "a tensor is empty"
    return None


def _planned(convolution: FusedConvolution) -> str | None:
    """Returns why cuDNN has no plan, or `None`."""
    try:
        plan_of(convolution)
    except BackendError as error:
        return str(error)
    return None
