"""Transposes and reshapes of 8-bit tensors between convolutions stay in the convolutions'
region."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.models import model_of
from onnx import helper
from quantized_models import Convolution, assert_within_a_step, draw, run


@pytest.mark.parametrize("groups", [2, 3, 8])
def test_channels_of_bytes_are_shuffled_between_convolutions(groups: int) -> None:
    first = Convolution(draw(np.uint8, 1, 16, 9, 9), draw(np.int8, 24, 16, 1, 1) // 2)
    shuffled = first.expected().reshape(1, groups, -1, 9, 9).swapaxes(1, 2).reshape(1, 24, 9, 9)
    second = Convolution(
        shuffled, draw(np.int8, 8, 24, 3, 3, seed=3) // 2, pads=(1, 1), data_zero_point=3
    )
    constants = {
        **{f"a_{name}": array for name, array in first.constants().items()},
        **{f"b_{name}": array for name, array in second.constants().items()},
        "split": np.array([1, groups, 24 // groups, 9, 9], np.int64),
        "join": np.array([1, 24, 9, 9], np.int64),
    }
    nodes = [
        first.node("x", "c", "a_"),
        helper.make_node("Reshape", ["c", "split"], ["s"]),
        helper.make_node("Transpose", ["s"], ["t"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["t", "join"], ["u"]),
        second.node("u", "y", "b_"),
    ]
    inputs = {"x": first.data}
    found, report = run(model_of(nodes, inputs, constants, ["y"]), inputs)
    assert_within_a_step(found, second.expected())
    assert report.composites["dnnl.channel_shuffle"] == 1
    assert len({row.region for row in report}) == 1


@pytest.mark.parametrize("block", [(2, 2), (1, 3)])
@pytest.mark.parametrize("channels", [5, 16])
def test_channels_of_bytes_become_pixels_between_convolutions(
    block: tuple[int, int], channels: int
) -> None:
    (rows, columns), places = block, block[0] * block[1]
    weights = draw(np.int8, places * channels, 16, 1, 1) // 2
    first = Convolution(draw(np.uint8, 2, 16, 7, 9), weights)
    apart = first.expected().reshape(2, rows, columns, channels, 7, 9)
    pixels = apart.transpose(0, 3, 4, 1, 5, 2).reshape(2, channels, 7 * rows, 9 * columns)
    second = Convolution(
        pixels, draw(np.int8, 8, channels, 3, 3, seed=3) // 2, pads=(1, 1), data_zero_point=3
    )
    constants = {
        **{f"a_{name}": array for name, array in first.constants().items()},
        **{f"b_{name}": array for name, array in second.constants().items()},
        "split": np.array(apart.shape, np.int64),
        "join": np.array(pixels.shape, np.int64),
    }
    nodes = [
        first.node("x", "c", "a_"),
        helper.make_node("Reshape", ["c", "split"], ["s"]),
        helper.make_node("Transpose", ["s"], ["t"], perm=[0, 3, 4, 1, 5, 2]),
        helper.make_node("Reshape", ["t", "join"], ["u"]),
        second.node("u", "y", "b_"),
    ]
    inputs = {"x": first.data}
    found, report = run(model_of(nodes, inputs, constants, ["y"]), inputs)
    assert_within_a_step(found, second.expected())
    assert report.composites["dnnl.pixel_shuffle"] == 1
    assert len({row.region for row in report}) == 1
