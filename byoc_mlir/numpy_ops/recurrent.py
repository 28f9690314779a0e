"""One step of recurrent layers, for any number of rows; gates are in ONNX's order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from byoc_mlir.numpy_ops.activation import sigmoid
from byoc_mlir.tensors import Array


def lstm_step(gates: Array, cell: Array) -> tuple[Array, Array]:
    """Returns the hidden state and the cell state.

    Args:
        gates: the sums of the input, output, forget and cell gates, along the last axis.
        cell: the previous cell state.
    """
    hidden = cell.shape[-1]
    shares, candidate = sigmoid(gates[..., : 3 * hidden]), np.tanh(gates[..., 3 * hidden :])
    candidate *= shares[..., :hidden]
    cell = shares[..., 2 * hidden :] * cell
    cell += candidate
    return shares[..., hidden : 2 * hidden] * np.tanh(cell), cell


def gru_step(gates: Array, inputs: Array, state: Array, inner: Callable[[Array], Array]) -> Array:
    """Returns the hidden state.

    Args:
        gates: the sums of the update and reset gates, along the last axis.
        inputs: the hidden gate's part from the inputs.
        state: the previous hidden state.
        inner: computes the hidden gate's part from the state, given the reset gate.
    """
    hidden = state.shape[-1]
    shares = sigmoid(gates)
    update, reset = shares[..., :hidden], shares[..., hidden:]
    candidate = inputs + inner(reset)
    np.tanh(candidate, out=candidate)
    return candidate + update * (state - candidate)
