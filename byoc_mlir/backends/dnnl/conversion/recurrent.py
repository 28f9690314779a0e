"""Conversion of recurrent layers, one `dnnl` op for each direction."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.conversion.builder import Builder
from byoc_mlir.backends.dnnl.partition.recurrent_layer import RecurrentLayer, is_zero
from byoc_mlir.dialects import relay
from byoc_mlir.dialects.relay import recurrent as relay_recurrent
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.tensors import Array

_LSTM_GATES = [0, 2, 3, 1]
"""Positions of oneDNN's gates (input, forget, cell, output) in ONNX's order (input, output, forget,
cell).
"""

_GRU_GATES = [0, 1, 2]


def recurrent_layer(
    builder: Builder, layer: RecurrentLayer, used: Collection[int]
) -> Sequence[SSAValue | None]:
    """Builds the layer; returns its results, with `None` for results whose positions are not in
    `used`.

    The results are all hidden states `[T, D, N, H]`, then the last states.
    """
    directions = layer.sizes[1]
    backward = [layer.op.direction.data == "reverse", True][:directions]
    operands = [_operands(builder, layer, index) for index in range(directions)]
    ops = [
        _op(layer, operands[index], "reverse" if backward[index] else "forward")
        for index in range(directions)
    ]
    for op in ops:
        builder.add(op)
    joined = (_outputs, *[_last_states] * ops[0].STATES)
    return [
        join(builder, [op.results[position] for op in ops]) if position in used else None
        for position, join in enumerate(joined)
    ]


def _op(layer: RecurrentLayer, operands: Sequence[SSAValue], direction: str) -> dnnl.RecurrentOp:
    if isinstance(layer.op, relay_recurrent.LstmOp):
        return dnnl.LstmOp(operands, direction=direction)
    linear = layer.op.linear_before_reset
    return dnnl.GruOp(operands, direction=direction, linear_before_reset=linear)


def _operands(builder: Builder, layer: RecurrentLayer, direction: int) -> list[SSAValue]:
    name = layer.weights.weight.name
    constants = {
        f"{name}.{direction}.input": _weights(layer, direction),
        f"{name}.{direction}.state": _recurrence(layer, direction),
        f"{name}.{direction}.bias": _bias(layer, direction),
    }
    values = [
        builder.add(relay.ConstantOp.of(name, np.ascontiguousarray(array)))
        for name, array in constants.items()
    ]
    return [builder.value(layer.source), *values, *_states(builder, layer, direction)]


def _gates(layer: RecurrentLayer) -> list[int]:
    return _LSTM_GATES if isinstance(layer.op, relay_recurrent.LstmOp) else _GRU_GATES


def _weights(layer: RecurrentLayer, direction: int) -> Array:
    """Returns the input weights `[D*G*H, I]` of one direction as `[1, 1, I, G, H]`."""
    _, directions, _, inputs, hidden = layer.sizes
    gates = _gates(layer)
    array = layer.weights.array.reshape(directions, len(gates), hidden, inputs)
    return array[direction, gates].transpose(2, 0, 1)[np.newaxis, np.newaxis]


def _recurrence(layer: RecurrentLayer, direction: int) -> Array:
    """Returns the recurrent weights `[D, H, G*H]` of one direction as `[1, 1, H, G, H]`."""
    _, directions, _, _, hidden = layer.sizes
    gates = _gates(layer)
    array = layer.recurrence.array.reshape(directions, hidden, len(gates), hidden)
    return array[np.newaxis, direction : direction + 1, :, gates, :]


def _bias(layer: RecurrentLayer, direction: int) -> Array:
    """Returns the biases `[D*G*H]` of one direction as `[1, 1, B, H]`, with the state's bias added,
    if any.

    oneDNN adds one bias for each gate; only a GRU that is linear before its reset keeps the two
    biases of its hidden gate separate.
    """
    _, directions, _, _, hidden = layer.sizes
    gates = _gates(layer)
    shape = (directions, len(gates), hidden)
    rows = np.zeros(shape, np.float32) if layer.bias is None else layer.bias.array.reshape(shape)
    mine = rows[direction, gates]
    if layer.state_bias is not None:
        state = layer.state_bias.array.reshape(shape)[direction]
        assert isinstance(layer.op, relay_recurrent.GruOp)
        if layer.op.linear_before_reset.value.data:
            mine = np.concatenate([mine[:2] + state[:2], mine[2:], state[2:]])
        else:
            mine = mine + state
    return mine[np.newaxis, np.newaxis]


def _states(builder: Builder, layer: RecurrentLayer, direction: int) -> list[SSAValue]:
    """Returns the initial states `[1, 1, N, H]` of one direction, or none if all are zeros."""
    op = layer.op
    given = [op.hidden, op.cell] if isinstance(op, relay_recurrent.LstmOp) else [op.hidden]
    if all(is_zero(builder.reader, state) for state in given):
        return []
    return [_state(builder, state, direction) for state in given]


def _state(builder: Builder, state: SSAValue, direction: int) -> SSAValue:
    """Converts one direction of `[D, N, H]` to `[1, 1, N, H]`."""
    owner = builder.reader.owner(state)
    if isinstance(owner, relay.ConstantOp):
        array = owner.array[np.newaxis, direction : direction + 1]
        name = f"{owner.weight.name}.{direction}"
        return builder.add(relay.ConstantOp.of(name, np.ascontiguousarray(array)))
    batch, hidden = shape_of(state)[1:]
    mine = builder.slice(builder.value(state), (direction, 0, 0), (1, batch, hidden))
    return builder.view(mine, (1, 1, batch, hidden))


def _outputs(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
    """Joins the hidden states `[T, N, H]` of each direction to `[T, D, N, H]`."""
    steps, batch, hidden = shape_of(values[0])
    directions = len(values)
    whole = values[0] if directions == 1 else builder.add(dnnl.ConcatOp(values, axis=2))
    if directions == 1 or batch == 1:
        return builder.view(whole, (steps, directions, batch, hidden))
    split = builder.view(whole, (steps, batch, directions, hidden))
    return builder.add(dnnl.PermuteOp.of(split, (0, 2, 1, 3)))


def _last_states(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
    """Joins `[1, 1, N, H]` of each direction to `[D, N, H]`."""
    whole = values[0] if len(values) == 1 else builder.add(dnnl.ConcatOp(values, axis=0))
    return builder.view(whole, (len(values), *shape_of(whole)[2:]))
