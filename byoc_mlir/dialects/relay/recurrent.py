"""Recurrent layers over all time steps; the part that depends on the input only is an operand.

`data [T, D, N, G*H]` holds the matmuls of the input with the input weights, biases included, for G
gates; `weight [D, H, G*H]` maps the state to the gates; a state is `[D, N, H]`. D is 2 for
`bidirectional`, whose second half runs backward, else 1.

All operands have one type. Only `weight` may be `bf16` when the others are `f32`: then the factor
of the weight is rounded to `bf16` too, and everything else is computed in `f32`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, bf16, f32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    RelayOp,
    bool_prop,
    str_prop,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.shape import agreeing
from byoc_mlir.dims import Size

DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


class RecurrentOp(RelayOp, ABC):
    """Base of recurrent layers."""

    data = operand_def(TensorType)
    weight = operand_def(TensorType)
    direction = str_prop("forward", tuple(DIRECTIONS))

    def check_shapes(self, gates: int, states: Sequence[SSAValue]) -> tuple[Size, Size, Size, Size]:
        """Returns T, D, N and H, after checking that the operands fit together.

        Raises:
            VerifyException: the operands do not fit together.
        """
        data, weight = tensor_type(self.data), tensor_type(self.weight)
        if len(type_sizes(data)) != 4:
            raise VerifyException(f"{self.name}: data must have rank 4, found {data}")
        steps, directions, batch, width = type_sizes(data)
        hidden = width // gates
        element_type = data.element_type
        expected = tensor_of(element_type, [directions, hidden, width])
        rounded = tensor_of(bf16, [directions, hidden, width])
        is_rounded = element_type == f32 and weight == rounded
        if not (weight == expected or is_rounded) or width % gates:
            raise VerifyException(f"{self.name}: weight must be {expected}, found {weight}")
        if directions != DIRECTIONS[self.direction.data]:
            raise VerifyException(
                f"{self.name}: {directions} directions do not fit '{self.direction.data}'"
            )
        state = (directions, batch, hidden)
        for value in states:
            type_ = tensor_type(value)
            if type_.element_type != element_type or not agreeing(type_sizes(type_), state):
                expected = tensor_of(element_type, state)
                raise VerifyException(f"{self.name}: a state must be {expected}, found {type_}")
        return steps, directions, batch, hidden


@irdl_op_definition
class LstmOp(RecurrentOp):
    """Long short-term memory: gates in the order input, output, forget, cell, as in ONNX.

    `cell = sigmoid(f) * cell + sigmoid(i) * tanh(c)`, `hidden = sigmoid(o) * tanh(cell)`; results
    are all hidden states `[T, D, N, H]` and the last hidden and cell states.
    """

    name = "relay.nn.lstm"
    data = operand_def(TensorType)
    weight = operand_def(TensorType)
    hidden = operand_def(TensorType)
    cell = operand_def(TensorType)
    output = result_def(TensorType)
    last_hidden = result_def(TensorType)
    last_cell = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        shape = self.check_shapes(4, [self.hidden, self.cell])
        element_type = tensor_type(self.data).element_type
        return (tensor_of(element_type, shape), self.hidden.type, self.cell.type)


@irdl_op_definition
class GruOp(RecurrentOp):
    """Gated recurrent unit: gates in the order update, reset, hidden, as in ONNX.

    `hidden = (1 - z) * n + z * hidden` with `n = tanh(data_n + (r * hidden) · weight_n + bias_n)`,
    or, with `linear_before_reset`, `n = tanh(data_n + r * (hidden · weight_n + bias_n))`.
    `bias [D, 3*H]` belongs to the state. Results are all hidden states and the last one.
    """

    name = "relay.nn.gru"
    data = operand_def(TensorType)
    weight = operand_def(TensorType)
    bias = operand_def(TensorType)
    hidden = operand_def(TensorType)
    linear_before_reset = bool_prop(False)
    output = result_def(TensorType)
    last_hidden = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        shape = self.check_shapes(3, [self.hidden])
        element_type = tensor_type(self.data).element_type
        expected = tensor_of(element_type, [shape[1], 3 * shape[3]])
        if self.bias.type != expected:
            raise VerifyException(f"{self.name}: bias must be {expected}, found {self.bias.type}")
        return (tensor_of(element_type, shape), self.hidden.type)
