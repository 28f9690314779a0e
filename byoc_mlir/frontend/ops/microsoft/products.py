"""Convolutions and matmuls fused with a sum and an activation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.activations import Activation, activation_of
from byoc_mlir.frontend.ops.heads import expect_rank
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.ops.nn import gemm, matmul, scaled
from byoc_mlir.frontend.ops.window import ConvAttributes, conv
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import NodeRefused, Value

_PARAMETERS = {"relu": 0, "tanh": 0, "sigmoid": 0, "leakyrelu": 1, "clip": 2, "hardsigmoid": 2}
"""Activations that may be fused, with their numbers of parameters."""


def _activation(name: str, parameters: Sequence[float]) -> Activation:
    """Returns an activation by name; the identity for an empty name.

    Raises:
        NodeRefused: the activation is unknown, or has another number of parameters.
    """
    kind = name.lower()
    if not name:
        return lambda _, data: data
    if kind not in _PARAMETERS:
        accepted = "Relu, Tanh, Sigmoid, LeakyRelu, Clip, HardSigmoid"
        raise NodeRefused(f"activation is '{name}', accepted are {accepted}")
    if len(parameters) != _PARAMETERS[kind]:
        raise NodeRefused(f"{name} has {_PARAMETERS[kind]} parameters, found {list(parameters)}")
    if kind == "clip":
        low, high = parameters
        return lambda context, data: context.emit(elementwise.ClipOp, data, a_min=low, a_max=high)
    alpha, beta = (*parameters, None, None)[:2]
    return activation_of(kind, alpha, beta)


@dataclass(frozen=True, kw_only=True)
class FusedConvAttributes(ConvAttributes):
    """Attributes of convolutions with an activation."""

    activation: str = ""
    activation_params: Sequence[float] = ()


@register_op(DOMAIN, "FusedConv", attributes=FusedConvAttributes)
def fused_conv(
    context: NodeContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    addend: Value | None = None,
    *,
    attributes: FusedConvAttributes,
) -> Value:
    """Imports FusedConv: a convolution, plus `addend`, then an activation."""
    result = conv(context, data, weight, bias, attributes=attributes)
    total = result if addend is None else arith.add(context, result, addend)
    activation = _activation(attributes.activation, attributes.activation_params)
    return activation(context, total)


@register_op(DOMAIN, "NhwcFusedConv", attributes=FusedConvAttributes)
def nhwc_fused_conv(
    context: NodeContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    addend: Value | None = None,
    *,
    attributes: FusedConvAttributes,
) -> Value:
    """Imports NhwcFusedConv; `data`, `addend` and result are NHWC, the weight is as for Conv."""
    if data.rank < 3:
        raise VerifyException(f"input has shape {list(data.shape)}, its rank must be at least 3")
    result = fused_conv(
        context,
        arith.channels_second(context, data),
        weight,
        bias,
        None if addend is None else arith.channels_second(context, addend),
        attributes=attributes,
    )
    return arith.channels_last(context, result)


@register_op(DOMAIN, "NhwcConv", attributes=ConvAttributes)
def nhwc_conv(
    context: NodeContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    attributes: ConvAttributes,
) -> Value:
    fused = FusedConvAttributes(**vars(attributes))
    return nhwc_fused_conv(context, data, weight, bias, attributes=fused)


@register_op(DOMAIN, "FusedMatMul")
def fused_matmul(
    context: NodeContext,
    a: Value,
    b: Value,
    *,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803 - the attribute's name
    transB: int = 0,  # noqa: N803 - the attribute's name
    transBatchA: int = 0,  # noqa: N803 - the attribute's name
    transBatchB: int = 0,  # noqa: N803 - the attribute's name
) -> Value:
    left = _arranged(context, a, batch=transBatchA, matrix=transA)
    right = _arranged(context, b, batch=transBatchB, matrix=transB)
    return scaled(context, matmul(context, left, right), alpha)


def _arranged(context: NodeContext, data: Value, *, batch: int, matrix: int) -> Value:
    """Returns an operand of FusedMatMul with its dimensions permuted; returns a vector
    unchanged.

    `batch` moves the first dimension after the other batch dimensions. Then `matrix` exchanges the
    last two dimensions.
    """
    axes = list(range(data.rank))
    if batch and data.rank > 2:
        axes = [*axes[1:-1], 0, axes[-1]]
    if matrix and data.rank > 1:
        axes[-2:] = reversed(axes[-2:])
    return arith.transpose(context, data, axes)


@register_op(DOMAIN, "FusedGemm")
def fused_gemm(
    context: NodeContext,
    a: Value,
    b: Value,
    c: Value | None = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - the attribute's name
    transB: int = 0,  # noqa: N803 - the attribute's name
) -> Value:
    expect_rank(a, "A", 2)
    expect_rank(b, "B", 2)
    product = gemm(context, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    if activation_gamma is not None:
        raise NodeRefused(f"activation_gamma is {activation_gamma}; no activation here has one")
    kind = activation.lower()
    if kind == "clip":
        raise NodeRefused("activation is 'Clip', which needs bounds that FusedGemm cannot give")
    parameters = [each for each in (activation_alpha, activation_beta) if each is not None]
    defaults = {"leakyrelu": [0.01], "hardsigmoid": [0.2, 0.5]}.get(kind, [])
    return _activation(activation, [*parameters, *defaults[len(parameters) :]])(context, product)
