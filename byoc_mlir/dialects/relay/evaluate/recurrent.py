"""Numpy semantics of the recurrent layers; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from byoc_mlir.dialects.relay import recurrent as relay
from byoc_mlir.dialects.relay.base import RelayOp, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.evaluate.elementwise import sigmoid, widened
from byoc_mlir.tensors import Array


def _times(op: relay.RecurrentOp, direction: int, steps: int) -> Iterator[int]:
    backward = op.direction.data == "reverse" or direction == 1
    return reversed(range(steps)) if backward else iter(range(steps))


def _meeting(op: relay.RecurrentOp, state: Array) -> Array:
    """The numbers of a state that the weight is multiplied with."""
    weight, data = (tensor_type(value).element_type for value in (op.weight, op.data))
    return state if weight == data else widened(state.astype(numpy_dtype(weight)))


def _lstm(
    op: relay.LstmOp, data: Array, weight: Array, hidden: Array, cell: Array
) -> Sequence[Array]:
    gates, weights = widened(data), widened(weight)
    h, c = widened(hidden).copy(), widened(cell).copy()
    output = np.empty((*data.shape[:3], hidden.shape[-1]), gates.dtype)
    for d in range(data.shape[1]):
        for t in _times(op, d, data.shape[0]):
            i, o, f, g = np.split(gates[t, d] + _meeting(op, h[d]) @ weights[d], 4, -1)
            c[d] = sigmoid(f) * c[d] + sigmoid(i) * np.tanh(g)
            h[d] = output[t, d] = sigmoid(o) * np.tanh(c[d])
    return [array.astype(data.dtype) for array in (output, h, c)]


def _gru(
    op: relay.GruOp, data: Array, weight: Array, bias: Array, hidden: Array
) -> Sequence[Array]:
    size = hidden.shape[-1]
    gates, weights, shift = widened(data), widened(weight), widened(bias)
    h = widened(hidden).copy()
    output = np.empty((*data.shape[:3], size), gates.dtype)
    for d in range(data.shape[1]):
        for t in _times(op, d, data.shape[0]):
            state = _meeting(op, h[d]) @ weights[d] + shift[d]
            z = sigmoid(gates[t, d, :, :size] + state[:, :size])
            r = sigmoid(gates[t, d, :, size : 2 * size] + state[:, size : 2 * size])
            if op.linear_before_reset.value.data:
                inner = r * state[:, 2 * size :]
            else:
                met = _meeting(op, r * h[d])
                inner = met @ weights[d][:, 2 * size :] + shift[d, 2 * size :]
            n = np.tanh(gates[t, d, :, 2 * size :] + inner)
            h[d] = output[t, d] = (1 - z) * n + z * h[d]
    return [array.astype(data.dtype) for array in (output, h)]


RECURRENT: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    relay.GruOp: _gru,
    relay.LstmOp: _lstm,
}
