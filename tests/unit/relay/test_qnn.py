"""Meaning of the ops on quantised tensors, against `int64` and `float64`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.ir import Block, Region

from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay import RelayOp, qnn, qnn_window
from byoc_mlir.dialects.relay.base import PyValue
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.dialects.relay.evaluate import can_be_folded, evaluate, evaluate_op
from byoc_mlir.transforms.decompose_qnn import DecomposeQnn

Array = np.ndarray[Any, np.dtype[Any]]
BYTES = (np.uint8, np.int8)
WINDOW = {"strides": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1]}


def _op(kind: type[RelayOp], operands: list[Array], **properties: Any) -> RelayOp:
    types = [TensorType(relay_type(array.dtype), array.shape) for array in operands]
    op = kind(*Block(arg_types=types).args, **properties)
    op.verify()
    return op


def _evaluated(kind: type[RelayOp], *operands: Any, **properties: Any) -> Array:
    """Returns the result of an op, and checks that its decomposition returns the same."""
    arrays = [np.asarray(operand) for operand in operands]
    op = _op(kind, arrays, **properties)
    (result,) = evaluate_op(op, arrays)
    block = op.operands[0].owner
    assert isinstance(block, Block)
    types = FunctionType.from_lists(list(block.arg_types), list(op.result_types))
    block.add_ops([op, func.ReturnOp(*op.results)])
    function = func.FuncOp("main", types, Region(block))
    module = ModuleOp([function])
    DecomposeQnn().apply(make_context(), module)
    module.verify()
    assert not any("qnn" in inner.name for inner in module.walk())
    (decomposed,) = evaluate(function, arrays)
    assert decomposed.dtype == result.dtype
    np.testing.assert_array_equal(decomposed, result)
    return result


def _bytes(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Returns random 8-bit values, with both ends of the range among them."""
    info = np.iinfo(dtype)
    array = rng.integers(info.min, info.max + 1, shape, dtype)
    array.reshape(-1)[:2] = info.min, info.max
    return array


def test_quantize_rounds_halves_to_even_and_saturates() -> None:
    data = np.array([-1e9, -2.5, -1.5, 0.5, 1.5, 2.5, 1e9, np.inf], np.float32)
    found = _evaluated(qnn.QuantizeOp, data, np.float32(1), np.int8(3))
    np.testing.assert_array_equal(found, np.array([-128, 1, 1, 3, 5, 5, 127, 127], np.int8))


def test_blocks_along_an_axis() -> None:
    data = np.arange(10, dtype=np.int8).reshape(2, 5)
    scale = np.array([[1, 2, 4], [8, 16, 32]], np.float32)
    zero = np.array([[0, 1, 2], [3, 4, 5]], np.int8)
    found = _evaluated(qnn.DequantizeOp, data, scale, zero, axis=-1, block_size=2)
    expected = [[0, 1, 2, 4, 8], [16, 24, 48, 64, 128]]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


def test_dequantize_of_constants_is_not_folded() -> None:
    arrays = [np.zeros(4, np.int8), np.float32(1), np.int8(0)]
    operands = [np.asarray(array) for array in arrays]
    assert not can_be_folded(_op(qnn.DequantizeOp, operands), operands)


def test_requantize_per_channel() -> None:
    data = np.array([[-1000, 5, 7], [1000, 3, -7]], np.int32)
    scale = np.array([0.5, 0.25, 0.125], np.float32)
    found = _evaluated(
        qnn.RequantizeOp, data, scale, np.int32(0), np.float32(0.5), np.uint8(10), axis=1
    )
    expected = [[0, 12, 12], [255, 12, 8]]  # 2.5 and 1.5 to 2, 1.75 to 2, -1.75 to -2
    np.testing.assert_array_equal(found, np.array(expected, np.uint8))


@pytest.mark.parametrize("of_data", BYTES)
@pytest.mark.parametrize("of_weight", BYTES)
def test_products(of_data: Any, of_weight: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = _bytes(rng, of_data, (2, 3, 70)), _bytes(rng, of_weight, (70, 5))
    rows, columns = _bytes(rng, of_data, (2, 3, 1)), _bytes(rng, of_weight, (1, 5))
    wide = [array.astype(np.int64) for array in (a, b, rows, columns)]
    expected = (wide[0] - wide[2]) @ (wide[1] - wide[3])
    np.testing.assert_array_equal(_evaluated(qnn.MatmulOp, a, b, rows, columns), expected)
    turned = _evaluated(
        qnn.MatmulOp, a, np.ascontiguousarray(b.T), rows, columns.T, transpose_b=True
    )
    np.testing.assert_array_equal(turned, expected)
    one = rows[0, 0, 0]
    dense = _evaluated(qnn.DenseOp, a, b.T, one, columns[0])
    expected = (wide[0] - int(one)) @ (wide[1] - wide[3])
    np.testing.assert_array_equal(dense, expected)


@pytest.mark.parametrize("of_data", BYTES)
@pytest.mark.parametrize("of_weight", BYTES)
def test_convolution_pads_with_what_stands_for_zero(of_data: Any, of_weight: Any) -> None:
    rng = np.random.default_rng(2)
    data, weight = _bytes(rng, of_data, (1, 4, 5, 5)), _bytes(rng, of_weight, (6, 2, 3, 3))
    zero, zeros = _bytes(rng, of_data, (2,))[1], _bytes(rng, of_weight, (6,))
    found = _evaluated(qnn_window.Conv2DOp, data, weight, zero, zeros, groups=2, **WINDOW)
    centred = np.pad(data.astype(np.int64) - int(zero), [(0, 0), (0, 0), (1, 1), (1, 1)])
    kernel = weight.astype(np.int64) - zeros.astype(np.int64).reshape(6, 1, 1, 1)
    for y, x, o in ((0, 0, 0), (2, 3, 2), (4, 4, 5)):
        group = centred[0, (o // 3) * 2 :][:2, y : y + 3, x : x + 3]
        assert found[0, o, y, x] == (group * kernel[o]).sum()


def test_transposed_convolution_is_the_gradient() -> None:
    rng = np.random.default_rng(3)
    data, weight = _bytes(rng, np.uint8, (1, 3, 4)), _bytes(rng, np.int8, (3, 2, 3))
    found = _evaluated(
        qnn_window.Conv1DTransposeOp,
        data,
        weight,
        np.uint8(7),
        np.array([1, -2], np.int8),
        strides=[2],
        padding=[0, 0],
        dilation=[1],
        output_padding=[0],
    )
    kernel = weight.astype(np.int64) - np.array([1, -2]).reshape(1, 2, 1)
    expected = np.zeros((1, 2, 9), np.int64)
    for place in range(4):
        part = np.einsum("c,cok->ok", data[0, :, place].astype(np.int64) - 7, kernel)
        expected[0, :, 2 * place : 2 * place + 3] += part
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("kind", "function"), [(qnn.AddOp, np.add), (qnn.MultiplyOp, np.multiply)])
def test_binary(kind: type[RelayOp], function: Any) -> None:
    rng = np.random.default_rng(4)
    lhs, rhs = _bytes(rng, np.uint8, (2, 3, 50)), _bytes(rng, np.int8, (3, 1))
    found = _evaluated(
        kind,
        *(lhs, rhs, np.float32(0.125), np.uint8(100), np.float32(0.25), np.int8(-3)),
        *(np.float32(0.5), np.uint8(20)),
    )
    exact = function((lhs - 100.0) * 0.125, (rhs + 3.0) * 0.25) / 0.5
    np.testing.assert_array_equal(found, np.clip(np.rint(exact) + 20, 0, 255))


def test_average_pools_count_what_the_user_says() -> None:
    data = np.array([[[10, 20, 30, 40]]], np.uint8)
    parameters = (np.float32(0.5), np.uint8(10), np.float32(0.25), np.uint8(5))
    window: dict[str, PyValue] = {
        "pool_size": [3],
        "strides": [2],
        "padding": [1, 1],
        "dilation": [1],
    }
    found = _evaluated(qnn_window.AvgPool1DOp, data, *parameters, **window)
    np.testing.assert_array_equal(found, [[[15, 45]]])
    padded = _evaluated(qnn_window.AvgPool1DOp, data, *parameters, count_include_pad=True, **window)
    np.testing.assert_array_equal(padded, [[[12, 45]]])
    whole = _evaluated(qnn_window.GlobalAvgPool1DOp, data, *parameters)
    np.testing.assert_array_equal(whole, [[[35]]])


def test_lookup_reads_bytes_without_a_sign() -> None:
    table = np.arange(256, dtype=np.uint8)[::-1].copy()
    data = np.array([0, 1, 127, -128, -1], np.int8)
    np.testing.assert_array_equal(_evaluated(qnn.LookupOp, data, table), [255, 254, 128, 127, 0])
