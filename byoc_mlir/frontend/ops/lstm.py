"""LSTM: one `relay` op with default settings; a loop for peepholes, sequence lengths and other
settings.
"""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.activations import Activation, clipped
from byoc_mlir.frontend.ops.recurrent import (
    Direction,
    Operands,
    Step,
    dense,
    gates_of,
    run_directions,
)
from byoc_mlir.frontend.ops.recurrent_layer import CellAttributes, RecurrentAttributes, lstm_layer
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Value

LSTM_ACTIVATIONS = ("Sigmoid", "Tanh", "Tanh")
"""Default activations of the gates, of the candidate and of the cell."""


@onnx_op("LSTM", attributes=RecurrentAttributes)
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
    attributes: RecurrentAttributes,
    input_forget: int = 0,
) -> Sequence[Value]:
    operands = Operands(x, w, r, b, sequence_lens, (initial_h, initial_c))
    is_usual = attributes.are_usual(LSTM_ACTIVATIONS) and not attributes.layout
    if is_usual and operands.is_of_one_length and p is None and not input_forget:
        return lstm_layer(context, operands.layer(attributes.direction), initial_h, initial_c)
    return looped_lstm(
        context,
        operands,
        p,
        attributes,
        layout=attributes.layout,
        input_forget=bool(input_forget),
    )


def looped_lstm(
    context: NodeContext,
    operands: Operands,
    p: Value | None,
    attributes: CellAttributes,
    *,
    layout: int = 0,
    input_forget: bool,
) -> Sequence[Value]:
    """Returns an LSTM's three outputs, computed by a loop over the steps.

    Args:
        p: the peepholes.
        layout: value of ONNX's attribute `layout`.
        input_forget: True if the forget gate is 1 minus the input gate.
    """
    clip = attributes.clip

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

    steps = [
        make(index, clipped(clip, f), clipped(clip, g), h)
        for index, (f, g, h) in enumerate(attributes.functions(LSTM_ACTIVATIONS))
    ]
    return run_directions(context, operands, attributes, 4, steps, layout=layout)
