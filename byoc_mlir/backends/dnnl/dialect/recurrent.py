"""Recurrent layers: all time steps of one direction."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.backends.dnnl.dialect.base import ExecutedOp, like
from byoc_mlir.dialects.relay.base import bool_prop, shape_of, str_prop
from byoc_mlir.onednn import constants


class RecurrentOp(ExecutedOp, ABC):
    """`source [T, N, I], weights [1, 1, I, G, H], recurrence [1, 1, H, G, H], bias [1, 1, B, H]`.

    The initial states `[1, 1, N, H]` follow, unless they are zeros. Results are all hidden states
    `[T, N, H]` and the last states. `direction` is `forward` or `reverse`.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_rnn.html
    """

    STATES: ClassVar[int]
    """Number of states that are carried from step to step."""

    GATES: ClassVar[int]

    arguments = var_operand_def(TensorType)
    direction = str_prop("forward")

    @property
    def source(self) -> SSAValue:
        """Returns the inputs of all time steps."""
        return self.arguments[0]

    @property
    def states(self) -> Sequence[SSAValue]:
        """Returns the initial states, or none if they are zeros."""
        return self.arguments[4:]

    @property
    def biases(self) -> int:
        """Returns the number of rows of the bias."""
        return self.GATES

    def infer_types(self) -> Sequence[Attribute]:
        count = len(self.arguments)
        if count not in (4, 4 + self.STATES) or self.direction.data not in constants.DIRECTIONS:
            raise VerifyException(
                f"{self.name}: {count} operands, direction '{self.direction.data}'; accepted are"
                f" 4 or {4 + self.STATES} operands, {' or '.join(constants.DIRECTIONS)}"
            )
        source, weights = self.arguments[:2]
        steps, batch, inputs = shape_of(source)
        hidden = shape_of(weights)[-1]
        state = (1, 1, batch, hidden)
        expected = [
            (1, 1, inputs, self.GATES, hidden),
            (1, 1, hidden, self.GATES, hidden),
            (1, 1, self.biases, hidden),
            *[state] * (count - 4),
        ]
        for value, shape in zip(self.arguments[1:], expected, strict=True):
            if shape_of(value) != shape:
                raise VerifyException(
                    f"{self.name}: expected an operand of the shape {list(shape)},"
                    f" found {value.type}"
                )
        return (like(source, (steps, batch, hidden)), *[like(source, state)] * self.STATES)


@irdl_op_definition
class LstmOp(RecurrentOp):
    """Long short-term memory: gates in the order input, forget, cell, output."""

    name = "dnnl.lstm"
    STATES: ClassVar[int] = 2
    GATES: ClassVar[int] = 4
    output = result_def(TensorType)
    hidden = result_def(TensorType)
    cell = result_def(TensorType)


@irdl_op_definition
class GruOp(RecurrentOp):
    """Gated recurrent unit: gates in the order update, reset, hidden.

    With `linear_before_reset`, a fourth bias is added before the reset, to the product of the state
    and the hidden gate's weights.
    """

    name = "dnnl.gru"
    STATES: ClassVar[int] = 1
    GATES: ClassVar[int] = 3
    linear_before_reset = bool_prop(False)
    output = result_def(TensorType)
    hidden = result_def(TensorType)

    @property
    def biases(self) -> int:
        return 4 if self.linear_before_reset.value.data else 3
