"""oneDNN's LSTM called at once, on weights that it has in an order of its own."""

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
"""oneDNN's input, forget, cell, output in ONNX's input, output, forget, cell."""

_MATRICES = (Arg.WEIGHTS, Arg.WEIGHTS_1)
_NO_FLAGS = 0


@dataclass(frozen=True)
class Layer:
    """The sizes of an LSTM; its direction is ONNX's word."""

    steps: int
    rows: int
    features: int
    hidden: int
    direction: str

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def primitive(self) -> LstmPrimitive | None:
        """Returns the primitive for the threads that are set now.

        `None` where oneDNN has only its reference code: that is slow, and reading the layout of its
        weights crashes.
        """
        return made(self, engine().threads)


@lru_cache(KEPT)
def made(layer: Layer, threads: int) -> LstmPrimitive | None:
    """The primitive of a layer, see there.

    Args:
        threads: those that are set now; primitives share out their work when they are made.
    """
    primitive = LstmPrimitive(layer)
    return None if primitive.is_reference else primitive


class LstmPrimitive:
    """oneDNN's code for the sizes of a layer. Any number of threads may call it at once."""

    def __init__(self, layer: Layer):
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
        """True if it is code for any machine."""
        return self._primitive.descriptor.implementation.startswith("ref")

    def arrange(self, w: Array, r: Array, b: Array | None) -> ArrangedWeights:
        """ONNX's weights, recurrent weights and biases in the order in which they are read here.

        Args:
            w, r, b: of `f32`, `[directions, gates * hidden, inputs]`, and
                `[directions, 2 * gates * hidden]`.
        """
        found = {
            argument: self._matrix(argument, array)
            for argument, array in zip(_MATRICES, (w, r), strict=True)
        }
        arrays = {argument: memory for argument, (memory, _) in found.items()}
        layouts: dict[int, Descriptor] = {one: layout for one, (_, layout) in found.items()}
        return ArrangedWeights({**arrays, Arg.BIAS: self._bias(b)}, layouts)

    def reads(self, weights: ArrangedWeights) -> bool:
        """True if weights arranged for another size are what it would have made of them."""
        return weights.suit(self._primitive)

    def run(self, x: Array, weights: ArrangedWeights, h: Array, c: Array) -> tuple[Array, ...]:
        """The states after each step, `[steps, rows, directions * hidden]`, and the last ones.

        Args:
            x, h, c: contiguous, of `f32`: `[steps, rows, features]`, `[directions, rows, hidden]`.
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
        """`[directions, gates * hidden, inputs]` in a layout of `[1, directions, inputs, gates,
        hidden]`, and that layout."""
        directions, hidden, inputs = self._layer.directions, self._layer.hidden, weights.shape[-1]
        gates = _in_order(weights.reshape(directions, len(_GATES), hidden, inputs))
        gate = hidden * inputs
        given = Descriptor.with_strides(
            (1, directions, inputs, len(_GATES), hidden),
            (directions * len(_GATES) * gate, len(_GATES) * gate, 1, gate, inputs),
        )
        return arranged(self._primitive, argument, gates, given)

    def _bias(self, bias: Array | None) -> Array:
        """The sums of what is added to inputs and to states: `[directions, gates, hidden]`."""
        directions, hidden = self._layer.directions, self._layer.hidden
        if bias is None:
            return np.zeros((directions, len(_GATES), hidden), np.float32)
        return _in_order(bias.reshape(directions, 2, len(_GATES), hidden).sum(axis=1))


def _in_order(gates: Array) -> Array:
    """A contiguous copy with oneDNN's order of the gates, which are along the second dimension."""
    return np.ascontiguousarray(gates[:, _GATES])
