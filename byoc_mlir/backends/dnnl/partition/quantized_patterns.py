"""8-bit composites that oneDNN runs as one primitive."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.conversion.quantized_chains import (
    QuantizedConvolution,
    QuantizedProduct,
    read_quantized,
    read_sum_with_residual,
)
from byoc_mlir.backends.dnnl.partition.accepted_tensors import unsupported_shape
from byoc_mlir.backends.dnnl.partition.activations import Reader
from byoc_mlir.backends.dnnl.partition.saturation import has_own_kernel, saturates
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.onednn.engine import engine
from byoc_mlir.onednn.library import unavailable_reason
from byoc_mlir.patterns import CompositePattern, Match, Pattern, is_constant, is_op, wildcard

_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")


def quantized_patterns(*, has_all_products: bool) -> Sequence[CompositePattern]:
    """Returns the table of patterns, longer ones first.

    Args:
        has_all_products: True to offer int8 GEMMs to oneDNN even if it does not compute them
            exactly here.
    """
    rows: list[CompositePattern] = []
    for limits in ("_clip", ""):
        for name in _CONVOLUTIONS:
            for bias in ("_bias", ""):
                pattern = _with_residual(_convolution(name, has_bias=bool(bias)))
                rows.append(_row(f"dnnl.qnn_{name}{bias}_sum", pattern, limits, _check_residual))
    for limits in ("_clip", ""):
        for name in _CONVOLUTIONS:
            for bias in ("_bias", ""):
                pattern = _convolution(name, has_bias=bool(bias))
                rows.append(_row(f"dnnl.qnn_{name}{bias}", pattern, limits))
        rows.append(_row("dnnl.qnn_add", _sum(), limits))
    return [*rows, *_products(has_all_products)]


def _products(has_all: bool) -> Iterator[CompositePattern]:
    """Yields the patterns of int8 GEMMs with 8-bit or `f32` results."""

    def check(match: Match) -> str | None:
        if not has_all and unavailable_reason() is None and not engine().has_amx:
            return "an int8 matmul without AMX (the host's kernels are as fast)"
        return _check(match)

    for bias in ("_bias", ""):
        sums: Pattern = is_op("qnn.dense")(*[wildcard(), is_constant(), wildcard(), is_constant()])
        if bias:
            sums = is_op("nn.bias_add")(sums, is_constant())
        whole = is_op("qnn.requantize")(sums, *[is_constant() for _ in range(4)])
        yield CompositePattern(f"dnnl.qnn_dense{bias}_clip", is_op("clip")(whole), check)
        yield CompositePattern(f"dnnl.qnn_dense{bias}", whole, check)
        scaled = is_op("cast")(sums) * wildcard()
        yield CompositePattern(f"dnnl.qnn_dense{bias}_scale_add", scaled + is_constant(), check)
        yield CompositePattern(f"dnnl.qnn_dense{bias}_scale", scaled, check)


def _row(
    name: str,
    pattern: Pattern,
    limits: str,
    check: Callable[[Match], str | None] | None = None,
) -> CompositePattern:
    whole = is_op("clip")(pattern) if limits else pattern
    return CompositePattern(name + limits, whole, check or _check)


def _convolution(name: str, *, has_bias: bool) -> Pattern:
    parameters = [is_constant() for _ in range(3)]
    sums: Pattern = is_op(f"qnn.{name}")(wildcard(), *parameters)
    if has_bias:
        sums = is_op("nn.bias_add")(sums, is_constant())
    return is_op("qnn.requantize")(sums, *[is_constant() for _ in range(4)])


def _with_residual(convolution: Pattern) -> Pattern:
    """Returns the pattern of an addition with the convolution as one operand."""
    parameters = [is_constant() for _ in range(6)]
    sums = is_op("qnn.add")
    one = sums(convolution, wildcard(), *parameters)
    return one | sums(wildcard(), convolution, *parameters)


def _sum() -> Pattern:
    return is_op("qnn.add")(wildcard(), wildcard(), *[is_constant() for _ in range(6)])


def _check(match: Match) -> str | None:
    (result,) = match.results
    found = read_quantized(Reader(), result)
    if found is None:
        return "weights that are not i8 with zero points of 0, or a parameter that is not known"
    if isinstance(found, QuantizedConvolution):
        return _unsupported(found, result)
    if isinstance(found, QuantizedProduct):
        return unsupported_shape(found.data) or unsupported_shape(result) or saturates(found)
    return unsupported_shape(result) or _broadcasts(found.op.lhs, found.op.rhs)


def _check_residual(match: Match) -> str | None:
    (result,) = match.results
    found = read_sum_with_residual(Reader(), result)
    if found is None or found.residual is None:
        return "weights that are not i8 with zero points of 0, or a parameter that is not known"
    if found.residual.value.type != result.type:
        return f"residual {found.residual.value.type} is not of the type {result.type}"
    return _unsupported(found, result)


def _unsupported(found: QuantizedConvolution, result: SSAValue) -> str | None:
    reason = unsupported_shape(found.data) or unsupported_shape(result)
    if reason is None and math.prod(shape_of(found.data)[2:]) == 1:
        return "a convolution of one pixel (oneDNN has only reference code for it)"
    return reason or (None if has_own_kernel(found) else saturates(found))


def _broadcasts(lhs: SSAValue, rhs: SSAValue) -> str | None:
    if shape_of(lhs) == shape_of(rhs):
        return None
    return f"{lhs.type} and {rhs.type} are not of one shape"
