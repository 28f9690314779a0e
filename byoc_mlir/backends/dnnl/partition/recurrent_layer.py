"""Matching of recurrent layers together with the preceding matmul of input and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.partition.activations import Reader
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import ints, shape_of
from byoc_mlir.dialects.relay.nn import BiasAddOp, DenseOp
from byoc_mlir.dialects.relay.recurrent import GruOp, LstmOp, RecurrentOp
from byoc_mlir.dialects.relay.transform import ReshapeOp, TransposeOp
from byoc_mlir.patterns import Pattern, is_constant, is_op, wildcard


@dataclass(frozen=True)
class RecurrentLayer:
    """`op` on the matmul of `source [T, N, I]` and `weights [D*G*H, I]`, plus `bias [D*G*H]`."""

    op: LstmOp | GruOp
    source: SSAValue
    weights: ConstantOp
    recurrence: ConstantOp
    bias: ConstantOp | None
    state_bias: ConstantOp | None

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """Returns the sizes T, D, N, I and H."""
        steps, directions, batch, _ = shape_of(self.op.data)
        return steps, directions, batch, shape_of(self.source)[-1], shape_of(self.op.hidden)[-1]


def _projected() -> Pattern:
    product = is_op("nn.dense")(wildcard(), is_constant())
    biased = is_op("nn.bias_add")(product, is_constant()) | product
    split = is_op("reshape")(biased)
    return is_op("transpose")(split) | split


def lstm_pattern() -> Pattern:
    """Returns the pattern of the input's matmul for all time steps, followed by an LSTM."""
    return is_op("nn.lstm")(_projected(), is_constant(), wildcard(), wildcard())


def gru_pattern() -> Pattern:
    """Returns the pattern of the input's matmul for all time steps, followed by a GRU with a bias
    of the state.
    """
    return is_op("nn.gru")(_projected(), is_constant(), is_constant(), wildcard())


def read_recurrent_layer(reader: Reader, value: SSAValue) -> RecurrentLayer | None:
    """Matches the layer with result `value`, and checks shapes, axes and constants."""
    op = reader.owner(value)
    if not isinstance(op, LstmOp | GruOp):
        return None
    biased = _before_split(reader, op)
    bias: ConstantOp | None = None
    product = reader.owner(biased) if biased is not None else None
    if isinstance(product, BiasAddOp):
        bias = reader.constant(product.bias)
        is_last = product.positive_axis == len(shape_of(product.output)) - 1
        product = reader.owner(product.data) if bias is not None and is_last else None
    if not isinstance(product, DenseOp) or len(shape_of(product.data)) != 3:
        return None
    weights, recurrence = reader.constant(product.weight), reader.constant(op.weight)
    state_bias = reader.constant(op.bias) if isinstance(op, GruOp) else None
    if weights is None or recurrence is None or (isinstance(op, GruOp) and state_bias is None):
        return None
    source = reader.resolve(product.data)
    return RecurrentLayer(op, source, weights, recurrence, bias, state_bias)


def _before_split(reader: Reader, op: RecurrentOp) -> SSAValue | None:
    """Returns the rows `[T, N, D*G*H]` of which `op` is the split and transposed form `[T, D, N,
    G*H]`.
    """
    steps, directions, batch, width = shape_of(op.data)
    owner = reader.owner(op.data)
    wanted = (steps, directions, batch, width)
    is_view = directions == 1 or batch == 1
    if isinstance(owner, TransposeOp):
        if ints(owner.axes) != (0, 2, 1, 3):
            return None
        owner, is_view = reader.owner(owner.data), True
        wanted = (steps, batch, directions, width)
    if not isinstance(owner, ReshapeOp) or shape_of(owner.output) != wanted or not is_view:
        return None
    rows = reader.resolve(owner.data)
    return rows if shape_of(rows) == (steps, batch, directions * width) else None


def is_zero(reader: Reader, value: SSAValue) -> bool:
    """True if a value is a constant of zeros."""
    constant = reader.constant(value)
    return constant is not None and not np.any(constant.array)
