"""GRU and RNN. The default GRU is one op; other GRUs, RNNs and some LSTMs are loops over time.

One GEMM multiplies the inputs of all steps. Each step then consists of the state's matmul and the
gates.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, index, logic, nn, transform
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.activations import Activation, clipped
from byoc_mlir.frontend.ops.checked import checked
from byoc_mlir.frontend.ops.counted import backwards, for_loop, iteration_number
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.quantize import IntegerWeight
from byoc_mlir.frontend.ops.recurrent_layer import (
    CellAttributes,
    Layer,
    RecurrentAttributes,
    gru_layer,
)
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Value

Weight: TypeAlias = Value | IntegerWeight


@dataclass(frozen=True)
class Operands:
    """Operands of a recurrent op, for all directions.

    `x [T, B, I], w [D, G*H, I], r [D, G*H, H], bias [D, 2*G*H], lengths [B]`, initial states `[D,
    B, H]`.

    Raises:
        VerifyException: the rank of `x`, `w` or `r` is wrong.
    """

    x: Value
    w: Weight
    r: Weight
    bias: Value | None
    lengths: Value | None
    initial: tuple[Value | None, ...]

    def __post_init__(self) -> None:
        for name, sizes in (("X", self.x.sizes), ("W", self.w.shape), ("R", self.r.shape)):
            if len(sizes) != 3:
                raise VerifyException(f"{name} must have rank 3, found shape {list(sizes)}")

    @property
    def is_of_one_length(self) -> bool:
        """True if all sequences have the full length, and the element type is f32 or f64."""
        is_full = self.lengths is None or _are_full(self.lengths, self.x.sizes[0])
        return is_full and self.x.dtype.kind == "f" and self.x.dtype.itemsize >= 4

    def with_batch_second(self, context: NodeContext) -> Operands:
        """Returns the operands for `layout` 0, converted from `layout` 1."""

        def exchanged(value: Value) -> Value:
            return arith.transpose(context, value, [1, 0, 2])

        initial = tuple(None if state is None else exchanged(state) for state in self.initial)
        return replace(self, x=exchanged(self.x), initial=initial)

    def layer(self, direction: str) -> Layer:
        """Returns the operands for a layer that is imported as one op."""
        assert isinstance(self.w, Value)
        assert isinstance(self.r, Value)
        return Layer(self.x, self.w, self.r, self.bias, direction)


@dataclass(frozen=True)
class Direction:
    """Operands of one direction: `x [T, B, I], w [G*H, I], r [G*H, H]` and two biases `[G*H]`."""

    x: Value
    w: Weight
    r: Weight
    input_bias: Value | None
    state_bias: Value | None
    hidden: int
    lengths: Value | None
    backward: bool

    @property
    def steps(self) -> Size:
        """Returns the number of time steps."""
        return self.x.sizes[0]

    @property
    def batch(self) -> Size:
        """Returns the batch size."""
        return self.x.sizes[1]


def dense(context: NodeContext, data: Value, weight: Weight, bias: Value | None) -> Value:
    """Returns `data · weightᵀ + bias`."""
    if isinstance(weight, IntegerWeight):
        product = weight.product(context, data)
    else:
        product = context.emit(nn.DenseOp, data, weight)
    return arith.biased(context, product, bias)


def gates_of(context: NodeContext, value: Value, count: int) -> tuple[Value, ...]:
    """Splits the parts for the gates, which are concatenated along the last axis."""
    sections = [operator.index(value.sizes[-1]) // count] * count
    return context.emit_all(transform.SplitOp, value, sections=sections, axis=-1)


Step = Callable[[NodeContext, Direction, Value, tuple[Value, ...]], tuple[Value, ...]]


def _run(
    context: NodeContext, of: Direction, step: Step, states: tuple[Value, ...]
) -> tuple[Value, Sequence[Value]]:
    """Runs all steps of one direction; returns `y [T, 1, B, H]` and the last states `[B, H]`."""
    projected = dense(context, of.x, of.w, of.input_bias)
    is_known = all(value.constant is not None for value in (projected, *states))
    if isinstance(of.steps, int) and (of.steps == 1 or is_known):
        return _written_out(context, of, of.steps, projected, step, states)

    def build(inner: NodeContext, path: str, formals: Sequence[Value]) -> Sequence[Value]:
        time, *olds = formals
        if of.backward:
            last = inner.size_constant(of.steps - 1)
            time = inner.emit(elementwise.SubtractOp, last, time)
        given = inner.emit(index.TakeOp, projected, time, axis=0)
        hidden, news = _stepped(inner, of, step, time, given, tuple(olds))
        return [*news, arith.reshape(inner, hidden, (1, of.batch, of.hidden))]

    body = context.body("body", [iteration_number(context), *states], build)
    *lasts, y = for_loop(context, body, states, of.steps)
    return backwards(context, y, of.steps) if of.backward else y, lasts


def _written_out(
    context: NodeContext,
    of: Direction,
    steps: int,
    projected: Value,
    step: Step,
    states: tuple[Value, ...],
) -> tuple[Value, Sequence[Value]]:
    """Runs all steps unrolled; used for a single step, and for constants."""
    outputs: list[Value] = [states[0]] * steps
    order = range(steps)
    for time in reversed(order) if of.backward else order:
        given = arith.at(context, projected, 0, time)
        now = context.constant(np.int64(time))
        hidden, states = _stepped(context, of, step, now, given, states)
        outputs[time] = arith.reshape(context, hidden, (1, 1, of.batch, of.hidden))
    return arith.concatenate(context, outputs, 0), states


def _stepped(
    context: NodeContext,
    of: Direction,
    step: Step,
    time: Value,
    given: Value,
    states: tuple[Value, ...],
) -> tuple[Value, tuple[Value, ...]]:
    """Returns output and states of a step; after a sequence's end, these are 0 and the old
    states.

    Args:
        time: index of the step.
        given: the matmul of the step's input, `[B, G*H]`.
    """
    news = step(context, of, given, states)
    if of.lengths is None:
        return news[0], news
    active = context.emit(logic.GreaterOp, of.lengths, time)
    kept = tuple(
        arith.where(context, active, new, old) for new, old in zip(news, states, strict=True)
    )
    return arith.where(context, active, news[0], 0.0), kept


def run_directions(
    context: NodeContext,
    operands: Operands,
    attributes: CellAttributes,
    gates: int,
    steps: Sequence[Step],
    *,
    layout: int = 0,
) -> list[Value]:
    """Runs each direction and combines the results, as ONNX defines them.

    Args:
        gates: number of gates, which are concatenated in the weights.
        steps: the step function of each direction.
        layout: value of ONNX's attribute `layout`.
    """
    if not layout:
        return _results(context, operands, attributes, gates, steps)
    inner = operands.with_batch_second(context)
    whole, *states = _results(context, inner, attributes, gates, steps)
    return [
        arith.transpose(context, whole, [2, 0, 1, 3]),
        *(arith.transpose(context, state, [1, 0, 2]) for state in states),
    ]


def _results(
    context: NodeContext,
    operands: Operands,
    attributes: CellAttributes,
    gates: int,
    steps: Sequence[Step],
) -> list[Value]:
    """Returns all hidden states `[T, D, B, H]`, and the last states `[D, B, H]`."""
    hidden, batch = attributes.hidden_size or operands.r.shape[-1], operands.x.sizes[1]
    lengths = _lengths(context, operands)
    outputs: list[Value] = []
    lasts: list[Sequence[Value]] = []
    for number, step in enumerate(steps):
        of = Direction(
            operands.x,
            _of_direction(context, operands.w, number),
            _of_direction(context, operands.r, number),
            *_biases(context, operands.bias, number, gates * hidden),
            hidden,
            lengths,
            backward=attributes.direction == "reverse" or number == 1,
        )
        zero = context.constant(0, operands.x.dtype)
        zeros = arith.broadcast(context, zero, (batch, hidden))
        start = tuple(
            zeros if state is None else arith.at(context, state, 0, number)
            for state in operands.initial
        )
        y, last = _run(context, of, step, start)
        outputs.append(y)
        lasts.append([arith.reshape(context, state, (1, batch, hidden)) for state in last])
    states = (arith.concatenate(context, parts, 0) for parts in zip(*lasts, strict=True))
    return [arith.concatenate(context, outputs, 1), *states]


def _lengths(context: NodeContext, operands: Operands) -> Value | None:
    """Returns the lengths `[B, 1]`; `None` if all sequences are known to have the full length."""
    lengths, (steps, batch, _) = operands.lengths, operands.x.sizes
    if lengths is None or _are_full(lengths, steps):
        return None
    wide = cast(context, lengths, np.dtype(np.int64))
    wide = checked(context, wide, wide, "an element of sequence_lens", 0, steps)
    return arith.reshape(context, wide, (batch, 1))


def _biases(
    context: NodeContext, bias: Value | None, direction: int, size: int
) -> tuple[Value | None, Value | None]:
    """Returns the biases of the input and of the state."""
    if bias is None:
        return None, None
    row = arith.at(context, bias, 0, direction)
    first = arith.section(context, row, 0, 0, size)
    return first, arith.section(context, row, 0, size, 2 * size)


def _of_direction(context: NodeContext, weights: Weight, index: int) -> Weight:
    if isinstance(weights, IntegerWeight):
        return weights.at(context, index)
    return arith.at(context, weights, 0, index)


def _are_full(lengths: Value, steps: Size) -> bool:
    """True if all lengths are known to equal the number of steps."""
    known = lengths.constant
    return known is not None and isinstance(steps, int) and bool((known == steps).all())


@onnx_op("RNN", attributes=RecurrentAttributes)
def rnn(
    context: NodeContext,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    *,
    attributes: RecurrentAttributes,
) -> Sequence[Value]:
    operands = Operands(x, w, r, b, sequence_lens, (initial_h,))
    functions = attributes.functions(("Tanh",))

    def make(f: Activation) -> Step:
        def step(
            context: NodeContext, of: Direction, projected: Value, states: tuple[Value, ...]
        ) -> tuple[Value, ...]:
            recurrent = dense(context, states[0], of.r, of.state_bias)
            return (f(context, arith.add(context, projected, recurrent)),)

        return step

    steps = [make(clipped(attributes.clip, f)) for (f,) in functions]
    return run_directions(context, operands, attributes, 1, steps, layout=attributes.layout)


@onnx_op("GRU", attributes=RecurrentAttributes)
def gru(
    context: NodeContext,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    *,
    attributes: RecurrentAttributes,
    linear_before_reset: int = 0,
) -> Sequence[Value]:
    operands = Operands(x, w, r, b, sequence_lens, (initial_h,))
    defaults = ("Sigmoid", "Tanh")
    is_usual = attributes.are_usual(defaults) and not attributes.layout
    if is_usual and operands.is_of_one_length:
        layer = operands.layer(attributes.direction)
        return gru_layer(context, layer, initial_h, linear_before_reset=bool(linear_before_reset))
    functions = attributes.functions(defaults)

    clip = attributes.clip
    gated = _reset_after_product if linear_before_reset else _reset_before_product
    steps = [_gru_step(clipped(clip, f), clipped(clip, g), gated) for f, g in functions]
    return run_directions(context, operands, attributes, 3, steps, layout=attributes.layout)


_Gated: TypeAlias = Callable[
    [NodeContext, Direction, Sequence[Value], Value, Activation], tuple[Value, Value]
]
"""Function that returns a GRU's update gate, and the candidate's part from the state."""


def _gru_step(f: Activation, g: Activation, gated: _Gated) -> Step:
    def step(
        context: NodeContext, of: Direction, projected: Value, states: tuple[Value, ...]
    ) -> tuple[Value, ...]:
        (h,) = states
        zx, rx, hx = gates_of(context, projected, 3)
        update, candidate = gated(context, of, (zx, rx), h, f)
        new = g(context, arith.add(context, hx, candidate))
        kept = arith.multiply(context, update, h)
        fresh = arith.multiply(context, arith.subtract(context, 1.0, update), new)
        return (arith.add(context, fresh, kept),)

    return step


def _reset_after_product(
    context: NodeContext, of: Direction, given: Sequence[Value], h: Value, f: Activation
) -> tuple[Value, Value]:
    """Returns the gated parts for `linear_before_reset`, with one matmul for all gates."""
    *gates, hh = gates_of(context, dense(context, h, of.r, of.state_bias), 3)
    update, reset = _activated(context, given, gates, f)
    return update, arith.multiply(context, reset, hh)


def _reset_before_product(
    context: NodeContext, of: Direction, given: Sequence[Value], h: Value, f: Activation
) -> tuple[Value, Value]:
    assert isinstance(of.r, Value)  # no op has a GRU with weights of integers
    parts, bias = ((0, 2 * of.hidden), (2 * of.hidden, 3 * of.hidden)), of.state_bias
    both, last = (arith.section(context, of.r, 0, *part) for part in parts)
    biases = [None if bias is None else arith.section(context, bias, 0, *part) for part in parts]
    gates = gates_of(context, dense(context, h, both, biases[0]), 2)
    update, reset = _activated(context, given, gates, f)
    return update, dense(context, arith.multiply(context, reset, h), last, biases[1])


def _activated(
    context: NodeContext, given: Sequence[Value], gates: Sequence[Value], f: Activation
) -> list[Value]:
    """Returns the activated gates, given the parts of input and state."""
    return [f(context, arith.add(context, a, c)) for a, c in zip(given, gates, strict=True)]
