"""Composites that cuBLASLt runs as one call: a matmul, then a constant bias, then an activation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from xdsl.ir import SSAValue

from byoc_mlir.backends.cublaslt.matmuls import refused
from byoc_mlir.backends.gemm import bias_refused, gemm_of
from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.evaluate import evaluate_op
from byoc_mlir.dialects.relay.nn import BiasAddOp, DenseOp, MatmulOp
from byoc_mlir.patterns import CompositePattern, Match, Pattern, is_constant, is_op, wildcard
from byoc_mlir.tensors import Array

_ANCHORS = ("dense", "matmul")
_ACTIVATIONS = ("gelu", "relu", "")

_SAMPLES = np.linspace(-6, 6, 241, dtype=np.float32)
_GELU_ERROR = 1e-5
"""Maximum difference from GELU with tanh, which differs from that with erf by 5e-4."""


@cache
def patterns() -> Sequence[CompositePattern]:
    """Returns the table of patterns, the longest ones first."""
    return tuple(_rows())


def _rows() -> Iterator[CompositePattern]:
    for has_bias in (True, False):
        for activation in _ACTIVATIONS:
            if has_bias or activation:
                for anchor in _ANCHORS:
                    parts = (anchor, "bias" if has_bias else "", activation)
                    name = "cublaslt." + "_".join(filter(None, parts))
                    yield CompositePattern(name, _pattern(anchor, has_bias, activation), _check)


def _pattern(anchor: str, has_bias: bool, activation: str) -> Pattern:
    whole: Pattern = is_op(f"nn.{anchor}")(wildcard(), wildcard()).named("anchor")
    if has_bias:
        bias = is_constant().named("bias")
        whole = (is_op("nn.bias_add")(whole, bias) | whole + bias).named("biased")
    if activation == "relu":
        return is_op("nn.relu")(whole)
    return _gelu(whole.named("activated")) if activation else whole


def _gelu(x: Pattern) -> Pattern:
    """Returns the pattern of `0.5 · x · (1 + tanh(…))`; `_is_gelu` checks the values."""
    cube = is_op("power")(x, is_constant()) | (x * x) * x | x * (x * x)
    argument = (x + cube * is_constant()) * is_constant()
    gate, half = is_op("tanh")(argument) + is_constant(), is_constant()
    return (x * gate) * half | (x * half) * gate | x * (gate * half)


def _check(match: Match) -> str | None:
    anchor = match.op("anchor")
    assert isinstance(anchor, DenseOp | MatmulOp)
    reason = refused(anchor)
    if reason is None and gemm_of(anchor).count > 1:
        reason = "a batch of matmuls has neither bias nor activation"
    if reason is None and "bias" in match:
        reason = _refused_bias(match)
    if reason is None and "activated" in match and not _is_gelu(match):
        reason = "the activation is not GELU with tanh"
    return reason


def _refused_bias(match: Match) -> str | None:
    """Returns why a bias is not one value for each unit, or `None`."""
    adding, bias = match.op("biased"), match["bias"]
    if isinstance(adding, BiasAddOp):
        return bias_refused(adding)
    result = match.op("anchor").results[0]
    *others, last = (1, *shape_of(bias))
    if (
        set(others) == {1}
        and last == shape_of(result)[-1]
        and adding.results[0].type == result.type
    ):
        return None
    return f"bias {bias.type} is not one value for each unit of {result.type}"


def _is_gelu(match: Match) -> bool:
    """True if the ops after the bias compute GELU in the form that cuBLASLt has."""
    before = {match.op("anchor"), match.op("activated")}
    values: dict[SSAValue, Array] = {match["activated"]: _SAMPLES}
    for op in match.ops:
        if op in before or not isinstance(op, RelayOp) or isinstance(op, ConstantOp):
            continue
        operands = [_scalar(values, operand) for operand in op.operands]
        found = [operand for operand in operands if operand is not None]
        if len(found) < len(operands):
            return False
        values[op.results[0]] = evaluate_op(op, found)[0]
    x = _SAMPLES.astype(np.float64)
    wanted = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return bool(np.max(np.abs(values[match.results[0]] - wanted)) < _GELU_ERROR)


def _scalar(values: dict[SSAValue, Array], operand: SSAValue) -> Array | None:
    """Returns the samples of a value, or the value of a constant with one element."""
    known = values.get(operand)
    if known is not None or not isinstance(operand.owner, ConstantOp):
        return known
    array = operand.owner.array
    return array.reshape(()) if array.size == 1 else None
