"""oneDNN's LSTM as a direct call, with cached weights in oneDNN's order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from byoc_mlir.onednn.constants import BOTH_SIDE_BY_SIDE, DIRECTIONS, FORWARD_INFERENCE, Arg
from byoc_mlir.onednn.descriptors import Descriptor, PrimitiveAttributes
from byoc_mlir.onednn.engine import engine
from byoc_mlir.onednn.primitives import (
    KEPT,
    ArrangedWeights,
    Primitive,
    PrimitiveDescriptor,
    arranged,
)
from byoc_mlir.tensors import Array, aligned_empty

_GATES = [0, 2, 3, 1]
"""Positions of oneDNN's input, forget, cell and output gate in ONNX's order (input, output, forget,
cell)."""

_MATRICES = (Arg.WEIGHTS, Arg.WEIGHTS_1)
_NO_FLAGS = 0


@dataclass(frozen=True)
class LstmSizes:
    """Sizes of an LSTM; `direction` is ONNX's attribute."""

    steps: int
    rows: int
    features: int
    hidden: int
    direction: str

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def primitive(self) -> LstmPrimitive | None:
        """Returns the primitive for the current number of threads.

        Returns `None` if oneDNN has only its reference code: it is slow, and reading the layout of
        its weights crashes.
        """
        return made(self, engine().threads)


@lru_cache(KEPT)
def made(layer: LstmSizes, threads: int) -> LstmPrimitive | None:
    """Creates and caches a layer's primitive; `None` as in `LstmSizes.primitive`.

    Args:
        threads: current number of threads; a primitive partitions its work when it is created.
    """
    primitive = LstmPrimitive(layer)
    return None if primitive.is_reference else primitive


class LstmPrimitive:
    """oneDNN primitive for the sizes of a layer; any number of threads may call it at once."""

    def __init__(self, layer: LstmSizes):
        self._layer = layer
        directions, rows, hidden = layer.directions, layer.rows, layer.hidden
        data = Descriptor.dense((layer.steps, rows, layer.features))
        state = Descriptor.dense((1, directions, rows, hidden))
        matrices = [
            Descriptor.of_any_layout((1, directions, inputs, len(_GATES), hidden))
            for inputs in (layer.features, hidden)
        ]
        bias = Descriptor.dense((1, directions, len(_GATES), hidden))
        result = Descriptor.dense((layer.steps, rows, directions * hidden))
        peepholes = projection = None
        direction = DIRECTIONS.get(layer.direction, BOTH_SIDE_BY_SIDE)
        self._primitive = Primitive(
            PrimitiveDescriptor(
                "dnnl_lstm_forward_primitive_desc_create",
                *(engine(), FORWARD_INFERENCE, direction, data, state, state, *matrices),
                *(peepholes, projection, bias, result, state, state),
                *(_NO_FLAGS, PrimitiveAttributes()),
            )
        )

    @property
    def is_reference(self) -> bool:
        """True if the primitive is oneDNN's reference code."""
        return self._primitive.descriptor.implementation.startswith("ref")

    def arrange(self, w: Array, r: Array, b: Array | None) -> ArrangedWeights:
        """Returns ONNX's weights, recurrent weights and biases in the primitive's order.

        Args:
            w, r: `f32` `[directions, gates * hidden, inputs]`.
            b: `f32` `[directions, 2 * gates * hidden]`, or `None`.
        """
        found = {
            argument: self._matrix(argument, array)
            for argument, array in zip(_MATRICES, (w, r), strict=True)
        }
        arrays = {argument: memory for argument, (memory, _) in found.items()}
        layouts: dict[int, Descriptor] = {one: layout for one, (_, layout) in found.items()}
        return ArrangedWeights({**arrays, Arg.BIAS: self._bias(b)}, layouts)

    def reads(self, weights: ArrangedWeights) -> bool:
        """True if weights that were arranged for another size are in the primitive's layout."""
        return weights.suit(self._primitive)

    def run(self, x: Array, weights: ArrangedWeights, h: Array, c: Array) -> tuple[Array, ...]:
        """Returns the states after each step and the last states.

        The states after each step are `[steps, rows, directions * hidden]`.

        Args:
            x: contiguous `f32` `[steps, rows, features]`.
            h, c: contiguous `f32` `[directions, rows, hidden]`.
        """
        layer = self._layer
        result = aligned_empty(
            (layer.steps, layer.rows, layer.directions * layer.hidden), np.float32
        )
        last = [aligned_empty(h.shape, np.float32) for _ in range(2)]
        given = {Arg.SRC: x, Arg.SRC_ITER: h, Arg.SRC_ITER_C: c}
        new = {Arg.DST: result, Arg.DST_ITER: last[0], Arg.DST_ITER_C: last[1]}
        self._primitive.execute({**given, **weights.arrays, **new})
        return (result, *last)

    def _matrix(self, argument: Arg, weights: Array) -> tuple[Array, Descriptor]:
        """Arranges the weights `[directions, gates * hidden, inputs]` of all gates.

        Returns them as `[1, directions, inputs, gates, hidden]` in the primitive's layout, and that
        layout.
        """
        directions, hidden, inputs = self._layer.directions, self._layer.hidden, weights.shape[-1]
        gates = _in_order(weights.reshape(directions, len(_GATES), hidden, inputs))
        gate = hidden * inputs
        given = Descriptor.with_strides(
            (1, directions, inputs, len(_GATES), hidden),
            (directions * len(_GATES) * gate, len(_GATES) * gate, 1, gate, inputs),
        )
        return arranged(self._primitive, argument, gates, given)

    def _bias(self, bias: Array | None) -> Array:
        """Sums the biases of inputs and of states, to `[directions, gates, hidden]`."""
        directions, hidden = self._layer.directions, self._layer.hidden
        if bias is None:
            return np.zeros((directions, len(_GATES), hidden), np.float32)
        return _in_order(bias.reshape(directions, 2, len(_GATES), hidden).sum(axis=1))


def _in_order(gates: Array) -> Array:
    """Copies gates, along the second dimension, to oneDNN's order."""
    return np.ascontiguousarray(gates[:, _GATES])
