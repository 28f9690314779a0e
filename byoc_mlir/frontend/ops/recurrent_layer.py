"""Attributes of recurrent ops, and layers with default activations as one op for all time steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from byoc_mlir.dialects.relay import nn, recurrent
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.activations import DEFAULTS, Activation, activation_of
from byoc_mlir.frontend.value import NodeRefused, Value


@dataclass(frozen=True, kw_only=True)
class CellAttributes:
    """Activations, clipping and direction of a recurrent op."""

    activation_alpha: Sequence[float] | None = None
    activation_beta: Sequence[float] | None = None
    activations: Sequence[str] | None = None
    clip: float | None = None
    direction: str = "forward"
    hidden_size: int | None = None

    @property
    def directions(self) -> int:
        """Returns the number of directions, 1 or 2.

        Raises:
            NodeRefused: the direction is unknown.
        """
        if self.direction not in ("forward", "reverse", "bidirectional"):
            raise NodeRefused(f"direction '{self.direction}' is not supported")
        return 2 if self.direction == "bidirectional" else 1

    def are_usual(self, defaults: Sequence[str]) -> bool:
        """True if there is no clipping, and all directions have the default activations."""
        expected = [name.lower() for name in defaults] * self.directions
        names = self.activations
        return self.clip is None and (names is None or [name.lower() for name in names] == expected)

    def functions(self, defaults: Sequence[str]) -> list[list[Activation]]:
        """Returns the activations of each direction, with `alpha` and `beta` in order.

        Args:
            defaults: the activations of one direction, if the node names none.

        Raises:
            NodeRefused: the number of activations is wrong, or an activation is unknown.
        """
        wanted = len(defaults) * self.directions
        listed = list(self.activations or [*defaults] * self.directions)
        if len(listed) != wanted:
            raise NodeRefused(f"{wanted} activations are needed, found {listed}")
        given = iter(self.activation_alpha or ()), iter(self.activation_beta or ())
        built: list[Activation] = []
        for name in listed:
            count = len(DEFAULTS.get(name.lower(), ()))
            own = [next(numbers, None) for numbers in given[:count]]
            built.append(activation_of(name, *own))
        return [built[at : at + len(defaults)] for at in range(0, len(listed), len(defaults))]


@dataclass(frozen=True, kw_only=True)
class RecurrentAttributes(CellAttributes):
    """Attributes of ONNX's recurrent ops."""

    layout: int = 0
    """Order of dimensions; for 1, the batch comes before the time."""
    output_sequence: int = 0


@dataclass(frozen=True)
class Layer:
    """Operands of ONNX's LSTM or GRU with `layout` 0, and the direction."""

    x: Value
    w: Value
    r: Value
    b: Value | None
    direction: str

    @property
    def directions(self) -> int:
        """Returns the number of directions, 1 or 2."""
        return self.w.shape[0]

    @property
    def width(self) -> int:
        """Returns the number of gates times the hidden size."""
        return self.w.shape[1]

    def state(self, context: NodeContext, given: Value | None) -> Value:
        """Returns an initial state `[D, N, H]`, which is zeros if it is omitted."""
        if given is not None:
            return given
        zero = context.constant(0, self.x.dtype)
        return arith.broadcast(context, zero, (self.directions, self.x.sizes[1], self.r.shape[2]))

    def biases(self, context: NodeContext) -> tuple[Value, Value]:
        """Returns the biases of the input and of the state, `[D, G*H]` each."""
        if self.b is None:
            zero = context.constant(np.zeros((self.directions, self.width), self.x.dtype))
            return zero, zero
        halves = ((0, self.width), (self.width, 2 * self.width))
        first, second = (arith.section(context, self.b, 1, *half) for half in halves)
        return first, second

    def projected(self, context: NodeContext, bias: Value) -> Value:
        """Returns `x · wᵀ + bias` for all steps and directions: `[T, D, N, G*H]`."""
        steps, batch, inputs = self.x.sizes
        rows = self.directions * self.width
        weight = arith.reshape(context, self.w, (rows, inputs))
        product = context.emit(nn.DenseOp, self.x, weight)
        flat = arith.reshape(context, bias, (rows,))
        biased = context.emit(nn.BiasAddOp, product, flat, axis=-1)
        split = arith.reshape(context, biased, (steps, batch, self.directions, self.width))
        return arith.transpose(context, split, [0, 2, 1, 3])

    def recurrence(self, context: NodeContext) -> Value:
        """Returns the weight of the state, `[D, H, G*H]`."""
        return arith.transpose(context, self.r, [0, 2, 1])


def lstm_layer(
    context: NodeContext, layer: Layer, hidden: Value | None, cell: Value | None
) -> Sequence[Value]:
    """Returns the three outputs of an LSTM."""
    bias = arith.add(context, *layer.biases(context))
    return context.emit_all(
        recurrent.LstmOp,
        layer.projected(context, bias),
        layer.recurrence(context),
        layer.state(context, hidden),
        layer.state(context, cell),
        direction=layer.direction,
    )


def gru_layer(
    context: NodeContext, layer: Layer, hidden: Value | None, *, linear_before_reset: bool
) -> Sequence[Value]:
    """Returns the two outputs of a GRU."""
    input_bias, state_bias = layer.biases(context)
    return context.emit_all(
        recurrent.GruOp,
        layer.projected(context, input_bias),
        layer.recurrence(context),
        state_bias,
        layer.state(context, hidden),
        direction=layer.direction,
        linear_before_reset=linear_before_reset,
    )
