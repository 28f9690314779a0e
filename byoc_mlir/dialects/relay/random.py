"""Random bits: a function of a key and a position, so that threads draw them in any order."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, Signedness, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    OneResultOp,
    int_prop,
    one_size,
    size_prop,
    tensor_of,
)

UI32 = IntegerType(32, Signedness.UNSIGNED)
KEY = tensor_of(UI32, [2])

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
"""Rotations of the rounds of Threefry-2x32, repeated."""

ROUNDS = 20

PARITY = 0x1BD11BDA
"""Constant that, with the words of the key, gives its third word."""


@irdl_op_definition
class RandomKeyOp(OneResultOp):
    """`-> output [2]` of `ui32`: another key for each run."""

    name = "relay.random_key"

    def infer_types(self) -> Sequence[Attribute]:
        return (KEY,)


@irdl_op_definition
class RandomBitsOp(OneResultOp):
    """`key [2] -> output [size]` of `ui32`: random bits, equal for equal keys and streams.

    Element `i` is the first word of Threefry-2x32 with 20 rounds (Salmon et al., "Parallel Random
    Numbers: As Easy as 1, 2, 3", 2011) of the counter `(i, stream)`.
    """

    name = "relay.random_bits"
    key = operand_def(TensorType)
    size = size_prop()
    stream = int_prop(0)

    def infer_types(self) -> Sequence[Attribute]:
        if self.key.type != KEY:
            raise VerifyException(f"{self.name}: the key must be {KEY}, found {self.key.type}")
        return (tensor_of(UI32, [one_size(self.size)]),)
