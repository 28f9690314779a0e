"""The activations that recurrent ops name, with their `alpha` and `beta`."""

from __future__ import annotations

from collections.abc import Callable

from byoc_mlir.dialects.relay import elementwise, nn
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.value import NodeRefused, Value

Activation = Callable[[NodeContext, Value], Value]


def activation_of(name: str, alpha: float | None, beta: float | None) -> Activation:
    """An activation by its name, in any case.

    Raises:
        NodeRefused: it is not known.
    """

    def or_default(value: float | None, default: float) -> float:
        return default if value is None else value

    def affine(context: NodeContext, data: Value, scale: float, shift: float) -> Value:
        return arith.add(context, arith.multiply(context, data, scale), shift)

    match name.lower():
        case "sigmoid":
            return lambda context, data: context.emit(elementwise.SigmoidOp, data)
        case "tanh":
            return lambda context, data: context.emit(elementwise.TanhOp, data)
        case "relu":
            return lambda context, data: context.emit(nn.ReluOp, data)
        case "leakyrelu":
            slope = or_default(alpha, 0.01)
            return lambda context, data: context.emit(nn.LeakyReluOp, data, alpha=slope)
        case "affine":
            scale, shift = or_default(alpha, 1.0), or_default(beta, 0.0)
            return lambda context, data: affine(context, data, scale, shift)
        case "hardsigmoid":
            scale, shift = or_default(alpha, 0.2), or_default(beta, 0.5)
            return lambda context, data: context.emit(
                elementwise.ClipOp, affine(context, data, scale, shift), a_min=0.0, a_max=1.0
            )
        case _:
            raise NodeRefused(f"the activation '{name}' is not supported")


def clipped(clip: float | None, activation: Activation) -> Activation:
    """`activation` of its operand clamped to `[-clip, clip]`, if that is asked for."""
    if clip is None:
        return activation
    return lambda context, data: activation(
        context, context.emit(elementwise.ClipOp, data, a_min=-clip, a_max=clip)
    )
