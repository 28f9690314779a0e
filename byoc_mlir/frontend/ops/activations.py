"""Activations that recurrent ops name, with their `alpha` and `beta`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from byoc_mlir.dialects.relay import RelayOp, elementwise
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import softplus
from byoc_mlir.frontend.ops.nn import hard_sigmoid, leaky_relu, relu
from byoc_mlir.frontend.value import NodeRefused, Value

Activation = Callable[[NodeContext, Value], Value]

DEFAULTS: Mapping[str, tuple[float, ...]] = {
    "affine": (1.0, 0.0),
    "elu": (1.0,),
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01,),
    "scaledtanh": (1.0, 1.0),
    "thresholdedrelu": (1.0,),
}
"""Defaults of `alpha`, and of `beta` if there is one, for the activations that have them."""


def activation_of(name: str, *given: float | None) -> Activation:
    """Returns an activation by its name; upper and lower case are equal.

    Args:
        given: `alpha` and `beta`, if the activation has them; `None` for the default value.

    Raises:
        NodeRefused: the activation is not known.
    """
    kind = name.lower()
    if kind not in _ACTIVATIONS:
        raise NodeRefused(
            f"the activation '{name}' is not known, accepted are {', '.join(sorted(_ACTIVATIONS))}"
        )
    defaults = DEFAULTS.get(kind, ())
    numbers = [d if one is None else one for one, d in zip(given, defaults, strict=False)]
    return partial(_ACTIVATIONS[kind], **dict(zip(("alpha", "beta"), numbers, strict=False)))


def clipped(clip: float | None, activation: Activation) -> Activation:
    """Returns `activation` with its operand clamped to `[-clip, clip]`.

    Without `clip`, returns `activation` itself.
    """
    if clip is None:
        return activation
    return lambda context, data: activation(
        context, context.emit(elementwise.ClipOp, data, a_min=-clip, a_max=clip)
    )


def _affine(context: NodeContext, data: Value, *, alpha: float, beta: float) -> Value:
    return arith.add(context, arith.multiply(context, data, alpha), beta)


def _elu(context: NodeContext, data: Value, *, alpha: float) -> Value:
    growth = arith.subtract(context, context.emit(elementwise.ExpOp, data), 1.0)
    is_below = arith.less(context, data, 0.0)
    return arith.where(context, is_below, arith.multiply(context, growth, alpha), data)


def _scaled_tanh(context: NodeContext, data: Value, *, alpha: float, beta: float) -> Value:
    inner = arith.multiply(context, data, beta)
    return arith.multiply(context, context.emit(elementwise.TanhOp, inner), alpha)


def _softsign(context: NodeContext, data: Value) -> Value:
    size = arith.add(context, context.emit(elementwise.AbsOp, data), 1.0)
    return arith.divide(context, data, size)


def _thresholded_relu(context: NodeContext, data: Value, *, alpha: float) -> Value:
    return arith.where(context, arith.less(context, alpha, data), data, 0.0)


def _emitted(op: type[RelayOp], context: NodeContext, data: Value) -> Value:
    return context.emit(op, data)


_ACTIVATIONS: Mapping[str, Callable[..., Value]] = {
    "affine": _affine,
    "elu": _elu,
    "hardsigmoid": hard_sigmoid,
    "leakyrelu": leaky_relu,
    "relu": relu,
    "scaledtanh": _scaled_tanh,
    "sigmoid": partial(_emitted, elementwise.SigmoidOp),
    "softplus": softplus,
    "softsign": _softsign,
    "tanh": partial(_emitted, elementwise.TanhOp),
    "thresholdedrelu": _thresholded_relu,
}
