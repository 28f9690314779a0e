"""Convolutions that are left to the host, which vectorises over pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block

from byoc_mlir.backends.dnnl.partition.rules import op_rules
from byoc_mlir.dialects.relay import ConstantOp, window


def _reason(source: tuple[int, ...], weight: tuple[int, ...], groups: int = 1) -> str | None:
    rank = len(source) - 2
    kind = window.Conv1DOp if rank == 1 else window.Conv2DOp
    block = Block(arg_types=[TensorType(f32, source)])
    constant = ConstantOp.of("weight", np.zeros(weight, np.float32))
    attributes: dict[str, Any] = {
        "strides": [1] * rank,
        "padding": [0] * 2 * rank,
        "dilation": [1] * rank,
    }
    op = kind(block.args[0], constant.output, groups=groups, **attributes)
    block.add_ops([constant, op])
    return op_rules()[op.name.removeprefix("relay.")](op)


@pytest.mark.parametrize(
    ("source", "weight", "groups", "found"),
    [
        ((1, 32, 172, 88), (1, 32, 7, 3), 1, "few output channels fill no vector: 1 "),
        ((1, 12, 172, 88), (7, 12, 3, 3), 1, "few output channels fill no vector: 7 "),
        ((1, 258, 2000), (258, 1, 5), 258, "1-D depthwise convolution"),
    ],
)
def test_left_to_the_host(
    source: tuple[int, ...], weight: tuple[int, ...], groups: int, found: str
) -> None:
    reason = _reason(source, weight, groups)
    assert reason is not None
    assert found in reason


@pytest.mark.parametrize(
    ("source", "weight", "groups"),
    [
        ((1, 12, 172, 88), (8, 12, 3, 3), 1),
        ((1, 64, 172, 88), (2, 64, 1, 1), 1),
        ((1, 3, 8, 8), (4, 3, 3, 3), 1),
        ((1, 258, 8), (258, 1, 5), 258),
        ((1, 32, 112, 112), (32, 1, 3, 3), 32),
    ],
    ids=["a vector", "one pixel", "little work", "short lines", "depthwise"],
)
def test_taken(source: tuple[int, ...], weight: tuple[int, ...], groups: int) -> None:
    assert _reason(source, weight, groups) is None
