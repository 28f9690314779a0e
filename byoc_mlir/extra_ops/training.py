"""Optimiser steps: the ops of `ai.onnx.preview.training`.

All take the learning rate, the step, then a group of tensors for each kind of operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, logic
from byoc_mlir.frontend import NodeContext, Value, register_op
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast

_DOMAIN = "ai.onnx.preview.training"


def _grouped(
    context: NodeContext,
    values: Sequence[Value],
    kinds: int,
    update: Callable[..., Sequence[Value]],
) -> Sequence[Value]:
    """Calls `update` with the n-th tensor of each kind, for all n; returns the results by kind."""
    count = len(values) // kinds
    outputs = count * (kinds - 1)
    if count * kinds != len(values) or len(context.output_names) > outputs:
        raise VerifyException(
            f"it has {len(values)} tensors and {len(context.output_names)} outputs, accepted are"
            f" {kinds} tensors and {kinds - 1} outputs for each that is optimised"
        )
    results = [update(*values[number::count]) for number in range(count)]
    return [value for kind in zip(*results, strict=True) for value in kind]


def _regularised(context: NodeContext, x: Value, gradient: Value, norm: float) -> Value:
    return arith.add(context, arith.multiply(context, x, norm), gradient)


def _blend(context: NodeContext, old: Value, keep: float, new: Value, take: float) -> Value:
    return arith.add(
        context, arith.multiply(context, old, keep), arith.multiply(context, new, take)
    )


def _after_first_step(context: NodeContext, step: Value, later: Value, first: Value) -> Value:
    zero = step.dtype.type(0)
    is_later = context.emit(logic.GreaterOp, step, zero)
    return arith.where(context, is_later, later, first)


@register_op(_DOMAIN, "Adagrad")
def adagrad(
    context: NodeContext,
    rate: Value,
    step: Value,
    *values: Value,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> Sequence[Value]:
    decay = arith.multiply(context, cast(context, step, rate.dtype), decay_factor)
    slowed = arith.divide(context, rate, arith.add(context, decay, 1.0))

    def update(x: Value, gradient: Value, squares: Value) -> Sequence[Value]:
        g = _regularised(context, x, gradient, norm_coefficient)
        squares = arith.add(context, squares, arith.multiply(context, g, g))
        root = arith.add(context, context.emit(elementwise.SqrtOp, squares), epsilon)
        move = arith.divide(context, arith.multiply(context, slowed, g), root)
        return arith.subtract(context, x, move), squares

    return _grouped(context, values, 3, update)


@register_op(_DOMAIN, "Adam")
def adam(
    context: NodeContext,
    rate: Value,
    step: Value,
    *values: Value,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> Sequence[Value]:
    time = cast(context, step, rate.dtype)

    def unbiased(factor: float) -> Value:
        return arith.subtract(context, 1.0, arith.power(context, factor, time))

    root = context.emit(elementwise.SqrtOp, unbiased(beta))
    later = arith.divide(context, arith.multiply(context, rate, root), unbiased(alpha))
    adjusted = _after_first_step(context, step, later, rate)

    def update(x: Value, gradient: Value, mean: Value, squares: Value) -> Sequence[Value]:
        g = _regularised(context, x, gradient, norm_coefficient)
        mean = _blend(context, mean, alpha, g, 1 - alpha)
        squares = _blend(context, squares, beta, arith.multiply(context, g, g), 1 - beta)
        root = arith.add(context, context.emit(elementwise.SqrtOp, squares), epsilon)
        move = arith.divide(context, arith.multiply(context, adjusted, mean), root)
        moved = arith.subtract(context, x, move)
        return arith.multiply(context, moved, 1 - norm_coefficient_post), mean, squares

    return _grouped(context, values, 4, update)


@register_op(_DOMAIN, "Momentum")
def momentum(
    context: NodeContext,
    rate: Value,
    step: Value,
    *values: Value,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> Sequence[Value]:
    constant = partial(context.constant, dtype=rate.dtype)
    damping = _after_first_step(context, step, constant(beta), constant(1.0))

    def update(x: Value, gradient: Value, velocity: Value) -> Sequence[Value]:
        g = _regularised(context, x, gradient, norm_coefficient)
        damped = arith.multiply(context, damping, g)
        velocity = arith.add(context, arith.multiply(context, velocity, alpha), damped)
        move = velocity
        if mode == "nesterov":
            move = arith.add(context, g, arith.multiply(context, velocity, alpha))
        return arith.subtract(context, x, arith.multiply(context, rate, move)), velocity

    return _grouped(context, values, 3, update)
