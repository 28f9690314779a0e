"""Recurrent layers, by oneDNN where it has an LSTM for the case.

The fallback multiplies the inputs of all steps at once, and then runs all directions in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byoc_mlir.interpreter.kept_weights import KeptWeights
from byoc_mlir.interpreter.lstm import LstmPrimitive, LstmSizes
from byoc_mlir.interpreter.ops.errors import NotInterpretedError
from byoc_mlir.interpreter.products import matmul
from byoc_mlir.numpy_ops.recurrent import gru_step, lstm_step
from byoc_mlir.tensors import Array

_Step = Callable[[Array, Sequence[Array]], Sequence[Array]]
"""Function that maps the input products of a step and the states before it to the states
after it."""


@dataclass(frozen=True)
class _Sequences:
    """Inputs of a layer: `x` as `[steps, rows, features]`, and the number of steps of each row."""

    x: Array
    directions: Sequence[bool]
    lengths: Array | None

    def order(self, backwards: bool) -> Array | slice:
        """Returns the step that each step of a direction reads, for each row if rows differ."""
        if not backwards:
            return slice(None)
        if self.lengths is None:
            return slice(None, None, -1)
        step = np.arange(len(self.x))[:, None]
        return np.where(step < self.lengths, self.lengths - 1 - step, step)

    def put_in_order(self, values: Array, backwards: bool) -> Array:
        """Reorders values from time order to a direction's order, or back."""
        order = self.order(backwards)
        if isinstance(order, slice):
            return values[order]
        return values[order, np.arange(order.shape[1])]


def _run_layer(
    sequences: _Sequences, w: Array, bias: Array, states: Sequence[Array], step: _Step
) -> tuple[Array, Sequence[Array]]:
    """Runs a layer; returns the first state after each step, and the last states.

    The first result is `[steps, directions, rows, hidden]`.
    """
    steps, rows, features = sequences.x.shape
    inputs = sequences.x.reshape(steps * rows, features)
    gates = np.empty((steps, len(w), rows, w.shape[1]), np.float32)
    for number, backwards in enumerate(sequences.directions):
        product = matmul(inputs, w[number].T).reshape(steps, rows, -1)
        np.add(sequences.put_in_order(product, backwards), bias[number], out=gates[:, number])
    result = np.empty((steps, *states[0].shape), np.float32)
    for number in range(steps):
        after = step(gates[number], states)
        if sequences.lengths is None:
            states, result[number] = after, after[0]
            continue
        lives = (number < sequences.lengths)[:, None]
        states = [np.where(lives, new, old) for new, old in zip(after, states, strict=True)]
        result[number] = np.where(lives, after[0], np.float32(0))
    for number, backwards in enumerate(sequences.directions):
        if backwards:
            result[:, number] = sequences.put_in_order(result[:, number], backwards).copy()
    return result, states


def _sequences(x: Array, directions: int, direction: str, lengths: Array | None) -> _Sequences:
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    if len(backwards) != directions or not x.size:
        raise NotInterpretedError("weights that are not those of the directions, or no inputs")
    if lengths is None:
        return _Sequences(x, backwards, None)
    if lengths.shape != x.shape[1:2] or lengths.min() < 1 or lengths.max() > len(x):
        raise NotInterpretedError("lengths of sequences that are none")
    return _Sequences(x, backwards, None if lengths.min() == len(x) else lengths)


def _with_layout(layout: int, result: Array, states: Sequence[Array]) -> tuple[Array, ...]:
    """Converts results to the layout: steps first, or rows first."""
    if not layout:
        return (result, *states)
    return (result.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in states))


def _initial(state: Array | None, layout: int, shape: tuple[int, ...]) -> Array:
    if state is None:
        return np.zeros(shape, np.float32)
    placed = state.swapaxes(0, 1) if layout else state
    if placed.shape != shape or placed.dtype != np.float32:
        raise NotInterpretedError("an initial state that is not that of the layer")
    return placed


def _check_weights(x: Array, w: Array, r: Array, b: Array | None, gates: int) -> None:
    """Checks types and shapes of a layer.

    Raises:
        NotInterpretedError: a type is not `f32`, or a shape does not fit.
    """
    if any(each is not None and each.dtype != np.float32 for each in (x, w, r, b)):
        raise NotInterpretedError(f"a layer of {x.dtype}")
    directions, hidden = len(w), r.shape[-1]
    wanted = [(directions, gates * hidden, inputs) for inputs in (x.shape[-1], hidden)]
    if x.ndim != 3 or not hidden or [w.shape, r.shape] != wanted:
        raise NotInterpretedError(f"data of {x.shape}, weights of {w.shape} and {r.shape}")
    if b is not None and b.shape != (directions, 2 * gates * hidden):
        raise NotInterpretedError(f"biases of {b.shape} for weights of {w.shape}")


class _Lstm:
    """ONNX's LSTM of `f32`, by oneDNN if all rows have all steps."""

    def __init__(self, x: object, *constants: Array | None):
        self._arranged = KeptWeights((*constants, None, None)[:3])

    def __call__(
        self,
        x: Array,
        w: Array,
        r: Array,
        b: Array | None = None,
        lengths: Array | None = None,
        h: Array | None = None,
        c: Array | None = None,
        peepholes: None = None,
        direction: str = "forward",
        layout: int = 0,
    ) -> tuple[Array, ...]:
        """Returns the states after each step, and the last states."""
        _check_weights(x, w, r, b, 4)
        hidden = r.shape[-1]
        sequences = _sequences(x.swapaxes(0, 1) if layout else x, len(w), direction, lengths)
        shape = (len(w), sequences.x.shape[1], hidden)
        states = [_initial(state, layout, shape) for state in (h, c)]
        if sequences.lengths is None:
            steps, rows, features = sequences.x.shape
            primitive = LstmSizes(steps, rows, features, hidden, direction).primitive()
            if primitive is not None:
                results = self._run_primitive(primitive, sequences.x, (w, r, b), states)
                return _with_layout(layout, *results)
        bias = np.zeros((len(w), 4 * hidden), np.float32)
        if b is not None:
            np.add(b[:, : 4 * hidden], b[:, 4 * hidden :], out=bias)
        recurrent = r.swapaxes(1, 2)

        def step(gates: Array, before: Sequence[Array]) -> Sequence[Array]:
            return lstm_step(gates + matmul(before[0], recurrent), before[1])

        return _with_layout(layout, *_run_layer(sequences, w, bias, states, step))

    def _run_primitive(
        self,
        primitive: LstmPrimitive,
        x: Array,
        weights: tuple[Array, Array, Array | None],
        states: Sequence[Array],
    ) -> tuple[Array, Sequence[Array]]:
        """Runs oneDNN's primitive; returns results in the shapes of `_run_layer`."""
        arranged = self._arranged.arranged(primitive, weights)
        h, c = map(np.ascontiguousarray, states)
        result, *last = primitive.run(np.ascontiguousarray(x), arranged, h, c)
        directions, rows, hidden = h.shape
        return result.reshape(len(x), rows, directions, hidden).swapaxes(1, 2), last


def _gru(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h: Array | None = None,
    direction: str = "forward",
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Array, ...]:
    """Computes ONNX's GRU of `f32`; returns the states after each step, and the last state."""
    _check_weights(x, w, r, b, 3)
    hidden = r.shape[-1]
    sequences = _sequences(x.swapaxes(0, 1) if layout else x, len(w), direction, lengths)
    states = [_initial(h, layout, (len(w), sequences.x.shape[1], hidden))]
    bias = np.zeros((len(w), 6 * hidden), np.float32) if b is None else b
    of_inputs, of_states = bias[:, : 3 * hidden], bias[:, None, 3 * hidden :]
    shared, inner = slice(2 * hidden), slice(2 * hidden, None)
    recurrent = np.ascontiguousarray(r.swapaxes(1, 2))  # products with a vector are faster by rows
    read = slice(None) if linear_before_reset else shared
    first, bias_of_first = recurrent[..., read], of_states[..., read]
    second, bias_of_second = recurrent[..., inner], of_states[..., inner]

    def step(gates: Array, before: Sequence[Array]) -> Sequence[Array]:
        (state,) = before
        products = matmul(state, first)
        products += bias_of_first

        def of_state(reset: Array) -> Array:
            if linear_before_reset:
                return reset * products[..., inner]
            return matmul(reset * state, second) + bias_of_second

        sums = gates[..., shared] + products[..., shared]
        return (gru_step(sums, gates[..., inner], state, of_state),)

    return _with_layout(layout, *_run_layer(sequences, w, of_inputs, states, step))


OPS: Mapping[str, Callable[..., Any]] = {"GRU": _gru, "LSTM": _Lstm}
"""Implementations by their names in ONNX."""
