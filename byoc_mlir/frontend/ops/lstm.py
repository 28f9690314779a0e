"""LSTM: the usual one is one op; with peepholes, lengths and the like it is a loop."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.activations import Activation, activations_of, clipped
from byoc_mlir.frontend.ops.recurrent import (
    Direction,
    Step,
    Weight,
    are_usual,
    check_ranks,
    dense,
    directions_of,
    gates_of,
    has_one_length,
    run_directions,
)
from byoc_mlir.frontend.ops.recurrent_layer import Layer, lstm_layer
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Value


@onnx_op("LSTM")
def lstm(
    context: NodeContext,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    initial_c: Value | None = None,
    p: Value | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
) -> Sequence[Value]:
    check_ranks(x, w, r)
    count = directions_of(direction)
    defaults = ("Sigmoid", "Tanh", "Tanh")
    is_usual = clip is None and are_usual(activations, defaults, count) and not layout
    if is_usual and has_one_length(x, sequence_lens) and p is None and not input_forget:
        return lstm_layer(context, Layer(x, w, r, b, direction), initial_h, initial_c)
    functions = activations_of(activations, defaults, activation_alpha, activation_beta, count)
    states = (b, sequence_lens, initial_h, initial_c, p)
    sizes = (hidden_size, direction, layout)
    cells = [(clipped(clip, f), clipped(clip, g), h) for f, g, h in functions]
    return looped_lstm(context, (x, w, r), states, cells, sizes, input_forget=bool(input_forget))


def looped_lstm(
    context: NodeContext,
    operands: tuple[Value, Weight, Weight],
    optional: tuple[Value | None, Value | None, Value | None, Value | None, Value | None],
    functions: Sequence[tuple[Activation, Activation, Activation]],
    sizes: tuple[int | None, str, int],
    *,
    input_forget: bool,
) -> Sequence[Value]:
    """An LSTM's three outputs, step by step.

    Args:
        operands: the input, and the weights of input and state.
        optional: bias, lengths, first states and peepholes.
        functions: the activations of gates, of the candidate and of the cell, for each direction.
        sizes: hidden size, direction and layout.
        input_forget: whether the input gate says what is forgotten.
    """
    bias, lengths, initial_h, initial_c, p = optional

    def make(index: int, f: Activation, g: Activation, h: Activation) -> Step:
        peepholes: tuple[Value, ...] = ()
        if p is not None:
            peepholes = gates_of(context, arith.at(context, p, 0, index), 3)

        def peek(context: NodeContext, gate: Value, cell: Value, which: int) -> Value:
            if not peepholes:
                return gate
            return arith.add(context, gate, arith.multiply(context, peepholes[which], cell))

        def step(
            context: NodeContext, of: Direction, projected: Value, states: tuple[Value, ...]
        ) -> tuple[Value, ...]:
            hidden, cell = states
            recurrent = dense(context, hidden, of.r, of.state_bias)
            gates = arith.add(context, projected, recurrent)
            i, o, forget, c = gates_of(context, gates, 4)
            i = f(context, peek(context, i, cell, 0))
            keep = (
                arith.subtract(context, 1.0, i)
                if input_forget
                else f(context, peek(context, forget, cell, 2))
            )
            kept = arith.multiply(context, keep, cell)
            cell = arith.add(context, kept, arith.multiply(context, i, g(context, c)))
            o = f(context, peek(context, o, cell, 1))
            return arith.multiply(context, o, h(context, cell)), cell

        return step

    check_ranks(*operands)
    steps = [make(index, *each) for index, each in enumerate(functions)]
    return run_directions(
        context, operands, (bias, lengths), 4, *sizes, steps, [initial_h, initial_c]
    )
