"""Ops created in Python: missing or wrong arguments raise a `VerifyException`."""

from __future__ import annotations

from contextlib import suppress

import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from byoc_mlir.dialects.relay import RelayOp
from byoc_mlir.dialects.relay.dialect import RELAY
from byoc_mlir.dialects.relay.vision import RoiAlignOp
from byoc_mlir.dialects.relay.window import CONV, CONV_TRANSPOSE, Conv2DOp

OPS = [op for op in RELAY.operations if issubclass(op, RelayOp)]
RANKS = range(6)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
@pytest.mark.parametrize("rank", RANKS)
def test_no_other_error_leaves_a_constructor(op: type[RelayOp], rank: int) -> None:
    value = create_ssa_value(TensorType(f32, [2] * rank))
    for count in range(len(op.get_irdl_definition().operands) + 2):
        with suppress(VerifyException):
            op(*[value] * count)


@pytest.mark.parametrize("op", [*CONV.values(), *CONV_TRANSPOSE.values()], ids=lambda op: op.name)
def test_a_missing_property_is_named(op: type[RelayOp]) -> None:
    value = create_ssa_value(TensorType(f32, [1]))
    with pytest.raises(VerifyException, match=f"{op.name}: the property .* is missing"):
        op(value, value)


def test_words_and_names_are_checked_when_an_op_is_made() -> None:
    value = create_ssa_value(TensorType(f32, [1]))
    with pytest.raises(VerifyException, match=r"has no property stride; it has .*strides"):
        Conv2DOp(value, value, stride=[1, 1])
    with pytest.raises(VerifyException, match="data_layout is 'NHWC', accepted is NCHW"):
        Conv2DOp(
            value,
            value,
            strides=[1, 1],
            padding=[0] * 4,
            dilation=[1, 1],
            data_layout="NHWC",
        )
    with pytest.raises(VerifyException, match="mode is 'mean', accepted is avg, max"):
        RoiAlignOp(value, value, value, pooled_size=[1, 1], mode="mean")
