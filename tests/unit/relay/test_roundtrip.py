"""Random `relay` ops: print, parse and verify give the same op again."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Block, Operation
from xdsl.parser import Parser

from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay import (
    ConstantOp,
    RelayOp,
    elementwise,
    logic,
    nn,
    reduce,
    transform,
    window,
)
from byoc_mlir.dialects.relay.dialect import FAMILIES, RELAY
from byoc_mlir.dialects.relay.elementwise import BroadcastOp, UnaryOp
from byoc_mlir.dialects.relay.evaluate import semantics_of

ELEMENTWISE = sorted(
    (
        op
        for family in (elementwise, logic)
        for op in vars(family).values()
        if inspect.isclass(op) and issubclass(op, UnaryOp | BroadcastOp) and "name" in vars(op)
    ),
    key=lambda op: op.name,
)
SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
SIZES = st.integers(1, 6)
NUMBERS = st.floats(allow_nan=False) | st.sampled_from([1e-5, 1e22, 1000001.0])


def _roundtrip(op: Operation, operands: Sequence[Operation]) -> None:
    module = ModuleOp([*operands, op])
    module.verify()
    text = str(module)
    again = Parser(make_context(), text).parse_module()
    again.verify()
    assert str(again) == text
    assert again.is_structurally_equivalent(module)


def _tensor(shape: Sequence[int]) -> ConstantOp:
    return ConstantOp.of("t", np.zeros(shape, np.float32))


OPS = [op for op in RELAY.operations if issubclass(op, RelayOp)]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_has_a_meaning(op: type[RelayOp]) -> None:
    assert semantics_of(op) is not None or op is ConstantOp
    assert inspect.getdoc(op)


def test_every_family_is_registered() -> None:
    assert all(inspect.ismodule(family) for family in FAMILIES)
    assert {op.__module__ for op in RELAY.operations} == {family.__name__ for family in FAMILIES}


@given(st.sampled_from(ELEMENTWISE), SHAPES, NUMBERS, NUMBERS)
def test_elementwise(op: type[RelayOp], shape: tuple[int, ...], low: float, high: float) -> None:
    data = _tensor(shape)
    properties: dict[str, Any] = {"a_min": low, "a_max": high} if op is elementwise.ClipOp else {}
    operands = [data, data] if issubclass(op, BroadcastOp) else [data]
    _roundtrip(op(*operands, **properties), [data])


@given(st.data())
def test_convolutions(data: st.DataObject) -> None:
    draw = data.draw
    op = draw(st.sampled_from([window.Conv1DOp, window.Conv2DOp, window.Conv3DTransposeOp]))
    n, groups = op.SPATIAL_RANK, draw(st.integers(1, 3))
    channels = groups * draw(st.integers(1, 2))
    kernel = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    image = _tensor((1, channels, *[9] * n))
    of_group = 1 if issubclass(op, window.ConvTransposeOp) else channels // groups
    weight = _tensor((channels, of_group, *kernel))
    extra: dict[str, Any] = (
        {"output_padding": [0] * n} if issubclass(op, window.ConvTransposeOp) else {}
    )
    created = op(
        image,
        weight,
        strides=draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)),
        padding=draw(st.lists(st.integers(0, 1), min_size=2 * n, max_size=2 * n)),
        dilation=draw(st.lists(st.integers(1, 2), min_size=n, max_size=n)),
        groups=groups,
        **extra,
    )
    _roundtrip(created, [image, weight])


@given(st.lists(SIZES, min_size=1, max_size=4), st.data())
def test_moves(shape: list[int], data: st.DataObject) -> None:
    draw, rank = data.draw, len(shape)
    x = _tensor(shape)
    begin = [draw(st.integers(0, size)) for size in shape]
    end = [draw(st.integers(start, size)) for start, size in zip(begin, shape, strict=True)]
    axis = draw(st.integers(-rank, rank - 1))
    cut = draw(st.integers(0, shape[axis]))
    created: RelayOp = draw(
        st.sampled_from(
            [
                transform.TransposeOp(x, axes=draw(st.permutations(range(rank)))),
                transform.StridedSliceOp(x, begin=begin, end=end, strides=[2] * rank),
                transform.SplitOp(x, sections=[cut, shape[axis] - cut], axis=axis),
                transform.ConcatenateOp([x, x, x], axis=axis),
                transform.PadOp(x, pad_width=[1, 2] * rank, pad_value=draw(st.floats())),
                transform.ExpandDimsOp(x, axis=[0, -1]),
                transform.ReshapeOp(x, newshape=[-1, 1]),
                reduce.SumOp(x, axis=[axis], keepdims=draw(st.booleans())),
                reduce.ArgmaxOp(x, axis=[axis], select_last_index=draw(st.booleans())),
                reduce.SoftmaxOp(x, axis=axis),
            ]
        )
    )
    _roundtrip(created, [x])


@pytest.mark.parametrize("width", [16, 32, 64])
@given(st.data())
def test_constants_of_floats(width: Literal[16, 32, 64], data: st.DataObject) -> None:
    numbers = st.floats(width=width) | st.integers(-5000, 5000).map(float)
    values = data.draw(st.lists(numbers, max_size=20))
    array = np.array(values, f"float{width}")
    op = ConstantOp.of("w", array)
    _roundtrip(op, [])
    assert op.array.tobytes() == array.tobytes()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_constants_of_integers(values: list[int]) -> None:
    array = np.array(values, np.int64)
    op = ConstantOp.of("w", array)
    _roundtrip(op, [])
    np.testing.assert_array_equal(op.array, array)


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "int4", "int8", "uint8", "uint16", "float16", "float64", "bfloat16"),
        *("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"),
    ],
)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 2), (5, 5)])
def test_constants_of_every_shape(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    op = ConstantOp.of("w", array)
    _roundtrip(op, [])
    assert op.array.shape == shape
    np.testing.assert_array_equal(op.array, array)


def test_batch_norm_has_three_results() -> None:
    block = Block(arg_types=[TensorType(f32, [1, 2, 3])])
    vector = _tensor((2,))
    op = nn.BatchNormOp(block.args[0], vector, vector, vector, vector)
    assert [result.type for result in op.results] == [
        TensorType(f32, [1, 2, 3]),
        TensorType(f32, [2]),
        TensorType(f32, [2]),
    ]
