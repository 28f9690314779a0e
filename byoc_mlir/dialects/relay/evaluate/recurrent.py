"""Evaluation of recurrent layers; see `evaluate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from byoc_mlir.dialects.relay import recurrent as relay
from byoc_mlir.dialects.relay.base import RelayOp, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.evaluate.elementwise import Evaluator
from byoc_mlir.numpy_ops.precision import widened
from byoc_mlir.numpy_ops.recurrent import gru_step, lstm_step
from byoc_mlir.tensors import Array


def _times(op: relay.RecurrentOp, direction: int, steps: int) -> Iterator[int]:
    backward = op.direction.data == "reverse" or direction == 1
    return reversed(range(steps)) if backward else iter(range(steps))


def _meeting(op: relay.RecurrentOp, state: Array) -> Array:
    """Returns a state, rounded to the weight's precision for their matmul."""
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
            h[d], c[d] = lstm_step(gates[t, d] + _meeting(op, h[d]) @ weights[d], c[d])
            output[t, d] = h[d]
    return [array.astype(data.dtype) for array in (output, h, c)]


def _gru(
    op: relay.GruOp, data: Array, weight: Array, bias: Array, hidden: Array
) -> Sequence[Array]:
    size = 2 * hidden.shape[-1]
    gates, weights, shift = widened(data), widened(weight), widened(bias)
    h = widened(hidden).copy()
    output = np.empty((*data.shape[:3], hidden.shape[-1]), gates.dtype)
    for d in range(data.shape[1]):
        for t in _times(op, d, data.shape[0]):
            state = _meeting(op, h[d]) @ weights[d] + shift[d]

            def inner(reset: Array, d: int = d, state: Array = state) -> Array:
                if op.linear_before_reset.value.data:
                    return reset * state[:, size:]
                met = _meeting(op, reset * h[d])
                return met @ weights[d][:, size:] + shift[d, size:]

            of_data = gates[t, d]
            sums = of_data[:, :size] + state[:, :size]
            h[d] = output[t, d] = gru_step(sums, of_data[:, size:], h[d], inner)
    return [array.astype(data.dtype) for array in (output, h)]


FUNCTIONS: dict[type[RelayOp], Evaluator] = {
    relay.GruOp: _gru,
    relay.LstmOp: _lstm,
}
