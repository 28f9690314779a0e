"""Windows larger than the data, Lp pools, and transposed windows with special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_models import BOTH, check, floats, model_of, node, numbers, onnxruntime

import byoc_mlir
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.testing.reference import assert_agrees


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_ceil_mode_with_a_window_larger_than_the_data(op: str) -> None:
    nodes = [
        node(op, "x", kernel_shape=[2], strides=[2], ceil_mode=1),
        node(op, "x", kernel_shape=[3], strides=[3], ceil_mode=1),
        node(op, "y", kernel_shape=[5], strides=[4], ceil_mode=1, pads=[1, 1]),
        node(op, "z", kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1),
    ]
    feeds = {"x": numbers(1, 1, 1), "y": numbers(1, 2, 2), "z": numbers(1, 2, 2, 4)}
    check(nodes, feeds, oracle=onnxruntime, targets=BOTH, opset=19)


def test_one_window_larger_than_the_data() -> None:
    nodes = [
        node("MaxPool", "x", kernel_shape=[3], strides=[2]),
        node("MaxPool", "x", "values places", kernel_shape=[4], strides=[3], pads=[0, 1]),
        node("MaxPool", "x", kernel_shape=[2], strides=[4], dilations=[4]),
        node("AveragePool", "x", kernel_shape=[5], strides=[4], pads=[1, 0]),
        node("AveragePool", "x", kernel_shape=[4], strides=[2], auto_pad="VALID"),
        node("AveragePool", "x", kernel_shape=[4], strides=[9], pads=[0, 1], count_include_pad=1),
        node("LpPool", "x", kernel_shape=[5], strides=[4], p=3),
        *(
            node(op, "z", kernel_shape=[3, 2], strides=[2, 3], dilations=[1, 2])
            for op in ("MaxPool", "AveragePool", "LpPool")
        ),
    ]
    feeds = {"x": numbers(1, 2, 2), "z": numbers(1, 2, 2, 9)}
    check(nodes, feeds, oracle=onnxruntime, targets=BOTH, opset=22)


@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_no_window_fits(ceil_mode: int) -> None:
    nodes = [
        node("MaxPool", "x", "values places", kernel_shape=[3], ceil_mode=ceil_mode),
        node("AveragePool", "x", kernel_shape=[5], strides=[2], ceil_mode=ceil_mode),
        node("LpPool", "z", kernel_shape=[3, 2], ceil_mode=ceil_mode),
    ]
    feeds = {"x": numbers(1, 2, 2), "z": numbers(1, 2, 2, 9)}
    check(nodes, feeds, oracle=onnxruntime, targets=BOTH, opset=22)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_a_window_that_is_nowhere_near_the_data(op: str) -> None:
    pool = node(op, "x", kernel_shape=[7], strides=[2])
    model = model_of([pool], {"x": numbers(1, 2, 2)}, {}, [], 22)
    with pytest.raises(InvalidModelError, match=r"a window of 7 .* does not fit the 2 elements"):
        byoc_mlir.compile(model)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_windows_over_data_of_any_size(op: str) -> None:
    pool = node(op, "x", "y", kernel_shape=[3, 3], strides=[2, 2])
    model = model_of([pool], {"x": numbers(1, 2, 9, 9)}, {}, [], 22)
    for axis, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
        if axis > 1:
            dim.dim_param = f"n{axis}"
    for targets in BOTH:
        with byoc_mlir.compile(model, targets=targets) as executable:
            for sizes in ((9, 9), (2, 7), (2, 2), (4, 1), (5, 3)):
                feeds = {"x": numbers(1, 2, *sizes)}
                assert_agrees(executable.run(feeds), onnxruntime(model, feeds))


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
@pytest.mark.parametrize("size", [5, 6])
def test_power_pools_in_ceil_mode(auto_pad: str, size: int) -> None:
    nodes = [
        node(
            "LpPool", "x", kernel_shape=[k, 2], strides=[2, 3], ceil_mode=1, auto_pad=auto_pad, p=p
        )
        for k, p in ((2, 2), (3, 1))
    ]
    check(nodes, {"x": numbers(1, 2, size, 9)}, oracle=onnxruntime, opset=19)


def test_power_pools_in_ceil_mode_with_pads() -> None:
    nodes = [
        node("LpPool", "x", kernel_shape=[k], strides=[s], ceil_mode=1, pads=list(pads))
        for k, s in ((2, 3), (3, 2))
        for pads in ((1, 1), (1, 0))
    ]
    check(nodes, {"x": numbers(1, 2, 7)}, oracle=onnxruntime, opset=19)


@pytest.mark.parametrize("group", [1, 2])
def test_transposed_convolutions_multiply_no_inserted_zeros(group: int) -> None:
    weight = numbers(4, 2, 3, 2)
    weight[0, 0, 1, 1], weight[3, 1, 2, 0], weight[2, 0, 0, 0] = np.inf, -np.inf, np.nan
    nodes = [
        node("ConvTranspose", "x w", strides=[2, 2], group=group),
        node("ConvTranspose", "x w", strides=[1, 3], dilations=[2, 1], group=group),
        node("ConvTranspose", "x w", strides=[2, 3], dilations=[3, 2], group=group),
    ]
    nodes.append(node("ConvTranspose", "x w", strides=[1, 2], pads=[1, 0, 1, 1], group=group))
    x = numbers(2, 4, 3, 4)
    check(nodes, {"x": x}, {"w": weight}, oracle=onnxruntime)
    check(nodes, {"x": x, "w": weight}, oracle=onnxruntime)


def test_transposed_convolutions_in_one_dimension_and_in_three() -> None:
    infinite = floats(1, np.inf, 2).reshape(1, 1, 3)
    nodes = [
        node("ConvTranspose", "x w", strides=[2]),
        node("ConvTranspose", "x w", strides=[2], pads=[1, 1], output_padding=[1]),
        node("ConvTranspose", "y v", strides=[2, 1, 2], pads=[0, 1, 1, 1, 0, 1]),
    ]
    cube = numbers(1, 2, 2, 3, 2)
    cube[0, 1, 1, 1, 1] = -np.inf
    feeds = {"x": np.ones((1, 1, 2), np.float32), "y": numbers(1, 1, 2, 3, 3)}
    check(nodes, feeds, {"w": infinite, "v": cube}, oracle=onnxruntime)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint8])
def test_the_maximum_of_padding_alone(dtype: Any) -> None:
    x = np.array([[[5, 7]]], dtype)
    lowest = -np.inf if np.dtype(dtype).kind == "f" else np.iinfo(np.dtype(dtype)).min
    pool = node("MaxPool", "x", kernel_shape=[2], strides=[3], pads=[3, 0])
    for feeds, constants in (({"x": x}, {}), ({}, {"x": x})):
        model = model_of([pool], feeds, constants, [], 20)
        for targets in BOTH:
            with byoc_mlir.compile(model, targets=targets, threads=1) as executable:
                (found,) = executable.run(feeds).values()
            assert found.tolist() == [[[lowest, 7]]]
