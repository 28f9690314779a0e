"""Convolutions in the interpreter tier: equal to ONNX Runtime's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from single_nodes import check, interpreted, node_model, numbers, ort

from byoc_mlir.interpreter.nodes import run_of
from byoc_mlir.interpreter.ops import convolution
from byoc_mlir.interpreter.ops.errors import NotInterpretedError
from byoc_mlir.onednn.engine import openmp_threads
from byoc_mlir.onednn.gemm import sgemm

CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 20), (8, 3, 5), {"pads": [2, 2]}),
    ((2, 3, 20), (8, 3, 5), {"pads": [4, 1], "strides": [3], "dilations": [2]}),
    ((1, 4, 9, 11), (6, 4, 1, 1), {}),
    ((2, 4, 9, 11), (6, 4, 1, 1), {"strides": [2, 2]}),
    ((2, 4, 9, 11), (6, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 3, 9, 11), (6, 3, 3, 2), {"pads": [0, 2, 3, 1], "strides": [2, 3]}),
    ((1, 3, 13, 11), (6, 3, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    ((1, 3, 5, 6, 7), (4, 3, 3, 2, 3), {"pads": [1, 0, 1, 1, 1, 0], "strides": [1, 2, 1]}),
    ((1, 16, 9, 9), (12, 8, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    ((2, 6, 9, 11), (6, 1, 3, 3), {"group": 6, "pads": [1, 1, 1, 1]}),
    ((2, 6, 9, 11), (12, 1, 3, 3), {"group": 6, "strides": [2, 2], "pads": [0, 1, 2, 1]}),
    ((2, 6, 9, 11), (4, 3, 3, 3), {"group": 2, "dilations": [2, 1]}),
    ((1, 8, 30), (8, 1, 4), {"group": 8, "pads": [3, 0]}),
    ((1, 4, 5, 6, 7), (4, 1, 2, 3, 2), {"group": 4, "strides": [2, 1, 1]}),
    ((1, 1, 3, 3), (1, 1, 3, 3), {}),
    ((0, 3, 9, 9), (4, 3, 3, 3), {}),
    ((40, 3, 9, 9), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 70, 64, 66), (4, 70, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 64, 64, 66), (64, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 128, 128, 132), (64, 128, 3, 3), {"pads": [0, 1, 0, 0], "strides": [2, 2]}),
    ((2, 3, 0, 5), (4, 3, 3, 3), {"pads": [2, 2, 2, 2]}),
    ((2, 9, 20), (8, 9, 5), {"pads": [4, 1], "strides": [3], "dilations": [2]}),
    ((2, 8, 9, 11), (6, 8, 3, 2), {"pads": [0, 2, 3, 1], "strides": [2, 3]}),
    ((1, 8, 5, 6, 7), (4, 8, 3, 2, 3), {"pads": [1, 0, 1, 1, 1, 0], "strides": [1, 2, 1]}),
    ((40, 8, 9, 9), (4, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 8, 0, 5), (4, 8, 3, 3), {"pads": [2, 2, 2, 2]}),
    ((1, 3, 90, 91), (4, 3, 4, 4), {}),
    ((2, 9, 3, 5), (8, 9, 1, 1), {"strides": [2, 2], "pads": [1, 2, 1, 2]}),
    ((2, 9, 3, 5), (8, 9, 1, 1), {"pads": [0, 1, 0, 0]}),
    ((2, 1, 900), (33, 1, 128), {"strides": [40]}),
]


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(("data", "weights", "attributes"), CASES)
def test_convolutions(
    data: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, Any], has_bias: bool
) -> None:
    operands = [numbers(*data), numbers(*weights, seed=1)]
    if has_bias:
        operands.append(numbers(weights[0], seed=2))
    check("Conv", *operands, **attributes)


def test_a_long_filter_of_one_channel_is_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks the convolutions by which networks compute spectrograms."""
    columns: list[int] = []

    def counted(a: Any, b: Any, c: Any, **scales: float) -> None:
        columns.append(len(b))
        sgemm(a, b, c, **scales)

    monkeypatch.setattr(convolution, "sgemm", counted)
    check("Conv", numbers(1, 1, 9000), numbers(65, 1, 512, seed=1), strides=[160])
    assert set(columns) == {512}


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize("auto_pad", ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("strides", [[1, 1], [2, 3], [3, 2]])
def test_padding_that_is_found(auto_pad: str, strides: list[int], group: int) -> None:
    operands = numbers(1, 4, 10, 13), numbers(8, 4 // group, 4, 3, seed=1)
    check("Conv", *operands, auto_pad=auto_pad, strides=strides, group=group)


def test_same_padding_with_dilations() -> None:
    """Checks a case that ONNX Runtime refuses; SAME means that the result has the data's size."""
    x, w = numbers(1, 2, 10, 13), numbers(3, 2, 2, 3, seed=1)
    dilations = [3, 2]
    model = node_model("Conv", (x, w), 21, auto_pad="SAME_UPPER", dilations=dilations)
    padded = node_model("Conv", (x, w), 21, pads=[1, 2, 2, 2], dilations=dilations)
    found = interpreted(model, (x, w), is_constant=False)
    np.testing.assert_allclose(found, ort(padded, (x, w)), rtol=1e-5, atol=1e-5)


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[list[Any], dict[str, Any]]:
    """Draws operands and attributes of a convolution."""
    rank = draw(st.integers(1, 3))
    group = draw(st.sampled_from([1, 1, 2, 3]))
    channels, results = (draw(st.sampled_from([1, 2, 8, 9])) for _ in range(2))

    def each(least: int, most: int, count: int = rank) -> list[int]:
        return draw(st.lists(st.integers(least, most), min_size=count, max_size=count))

    kernel, dilations, strides = each(1, 4), each(1, 3), each(1, 3)
    pads = each(0, 3, 2 * rank)
    sizes = [
        max(1, (extent - 1) * dilation + 1 + more - begin - end)
        for extent, dilation, more, begin, end in zip(
            kernel, dilations, each(0, 6), pads[:rank], pads[rank:], strict=True
        )
    ]
    operands = [
        numbers(draw(st.integers(1, 3)), group * channels, *sizes),
        numbers(group * results, channels, *kernel, seed=1),
    ]
    if draw(st.booleans()):
        operands.append(numbers(group * results, seed=2))
    attributes = {"dilations": dilations, "strides": strides, "pads": pads, "group": group}
    return operands, attributes


@given(convolutions())
@settings(max_examples=150, deadline=None)
def test_any_convolution(drawn: tuple[list[Any], dict[str, Any]]) -> None:
    operands, attributes = drawn
    check("Conv", *operands, **attributes)


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 20), (3, 8, 5), {"pads": [2, 2]}),
    ((2, 4, 9, 11), (4, 6, 2, 2), {"strides": [2, 2]}),
    ((2, 4, 9, 11), (4, 6, 3, 4), {"strides": [2, 3], "pads": [1, 0, 2, 1]}),
    ((2, 4, 9, 11), (4, 6, 3, 3), {"strides": [2, 2], "output_padding": [1, 1]}),
    ((1, 4, 5, 6), (4, 6, 3, 3), {"dilations": [2, 3], "strides": [2, 1]}),
    ((1, 4, 5, 6), (4, 3, 3, 3), {"group": 2, "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 4, 5, 6), (4, 2, 3, 3), {"group": 4}),
    ((1, 4, 5, 6), (4, 3, 1, 1), {"strides": [3, 2]}),
    ((1, 3, 4, 3, 5), (3, 2, 3, 2, 2), {"strides": [1, 2, 2], "pads": [1, 0, 0, 1, 1, 0]}),
    ((1, 4, 5, 6), (4, 3, 3, 3), {"strides": [2, 2], "output_shape": [10, 12]}),
    ((1, 4, 5, 6), (4, 3, 4, 3), {"strides": [2, 2], "output_shape": [11, 10]}),
    ((0, 3, 4, 4), (3, 2, 2, 2), {}),
]


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(("data", "weights", "attributes"), TRANSPOSED)
def test_transposed_convolutions(
    data: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, Any], has_bias: bool
) -> None:
    operands = [numbers(*data), numbers(*weights, seed=1)]
    if has_bias:
        operands.append(numbers(weights[1] * attributes.get("group", 1), seed=2))
    check("ConvTranspose", *operands, **attributes)


@pytest.mark.parametrize("auto_pad", ["VALID", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("strides", [[1, 1], [2, 3], [3, 2]])
@pytest.mark.parametrize("kernel", [[3, 3], [4, 3]])
def test_transposed_padding_that_is_found(
    auto_pad: str, strides: list[int], kernel: list[int]
) -> None:
    operands = numbers(1, 4, 5, 6), numbers(4, 3, *kernel, seed=1)
    check("ConvTranspose", *operands, auto_pad=auto_pad, strides=strides)


def test_more_than_there_is_is_refused() -> None:
    """Checks a case in which ONNX Runtime returns 9 rows, but ONNX defines 10."""
    operands = numbers(1, 4, 5, 6), numbers(4, 3, 1, 3)
    model = node_model("ConvTranspose", operands, 21, auto_pad="SAME_UPPER", strides=[2, 3])
    with pytest.raises(NotInterpretedError, match="10 elements"):
        interpreted(model, operands, is_constant=False)


@st.composite
def transposed_convolutions(draw: st.DrawFn) -> tuple[list[Any], dict[str, Any]]:
    """Draws operands and attributes of a transposed convolution."""
    rank = draw(st.integers(1, 3))
    group, channels, results = (draw(st.integers(1, 3)) for _ in range(3))

    def each(least: int, most: int) -> list[int]:
        return draw(st.lists(st.integers(least, most), min_size=rank, max_size=rank))

    kernel, dilations, strides, sizes = each(1, 4), each(1, 3), each(1, 3), each(1, 6)
    spreads = [(extent - 1) * step + 1 for extent, step in zip(kernel, dilations, strict=True)]
    pads = [draw(st.integers(0, (spread - 1) // 2)) for spread in spreads * 2]
    extra = [draw(st.integers(0, stride - 1)) for stride in strides]
    operands = [
        numbers(draw(st.integers(1, 3)), group * channels, *sizes),
        numbers(group * channels, results, *kernel, seed=1),
    ]
    if draw(st.booleans()):
        operands.append(numbers(group * results, seed=2))
    attributes = {"dilations": dilations, "strides": strides, "pads": pads, "group": group}
    return operands, {**attributes, "output_padding": extra}


@given(transposed_convolutions())
@settings(max_examples=150, deadline=None)
def test_any_transposed_convolution(drawn: tuple[list[Any], dict[str, Any]]) -> None:
    operands, attributes = drawn
    check("ConvTranspose", *operands, **attributes)


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_a_bias_that_does_not_fit_is_refused(kind: str) -> None:
    operands = numbers(1, 3, 9), numbers(3, 3, 2), numbers(1)
    model = node_model(kind, (*operands[:2], numbers(3)), 21)
    with pytest.raises(NotInterpretedError, match="bias"):
        interpreted(model, operands, is_constant=False)


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize(
    "attributes",
    [{"auto_pad": "SAME"}, {"strides": [1, 1]}, {"pads": [1]}, {"kernel_shape": [3]}],
)
def test_attributes_that_do_not_fit_are_refused(kind: str, attributes: dict[str, Any]) -> None:
    operands = numbers(1, 3, 9), numbers(3, 3, 2)
    model = node_model(kind, operands, 21)
    model.graph.node[0].attribute.extend(
        helper.make_attribute(name, value) for name, value in attributes.items()
    )
    with pytest.raises(NotInterpretedError):
        interpreted(model, operands, is_constant=False)


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_operands_of_other_types_are_refused(kind: str) -> None:
    operands = numbers(1, 3, 9), numbers(3, 3, 2), numbers(3)
    model = node_model(kind, operands, 21)
    for place in range(3):
        others = list(operands)
        others[place] = operands[place].astype(np.float64)
        with pytest.raises(NotInterpretedError, match="convolution of"):
            interpreted(model, others, is_constant=False)


@pytest.mark.parametrize("group", [1, 2])
def test_weights_that_do_not_fit_are_refused(group: int) -> None:
    operands = numbers(1, 6, 9), numbers(4, 2, 2)
    model = node_model("Conv", (numbers(1, 2 * group, 9), operands[1]), 21, group=group)
    with pytest.raises(NotInterpretedError, match="groups"):
        interpreted(model, operands, is_constant=False)


def test_weights_that_change_are_read_again() -> None:
    operands = [numbers(1, 3, 9), numbers(4, 3, 2)]
    model = node_model("Conv", operands, 21)
    first = interpreted(model, operands, is_constant=False)
    operands[1] *= 2
    np.testing.assert_allclose(
        interpreted(model, operands, is_constant=False), 2 * first, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_inputs_that_replace_constants_are_read(kind: str) -> None:
    operands = [numbers(1, 3, 9), numbers(3, 3, 2)]
    (node,) = node_model(kind, operands, 21).graph.node
    run = run_of(node, 21, {"x1": operands[1]})
    (first,) = run(*operands)
    (second,) = run(operands[0], 2 * operands[1])
    np.testing.assert_allclose(second, 2 * first, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("group", [1, 8])
def test_results_with_channels_last_are_data_of_the_next(group: int) -> None:
    x, w = numbers(2, 8, 9, 10), numbers(8, 8 // group, 3, 3, seed=1)
    model = node_model("Conv", (x, w), 21, group=group)
    first = interpreted(model, (x, w), is_constant=False)
    assert not first.flags.c_contiguous
    expected = ort(model, (np.ascontiguousarray(first), w))
    np.testing.assert_allclose(
        interpreted(model, (first, w), is_constant=False), expected, rtol=1e-5, atol=1e-4
    )


@pytest.mark.parametrize("group", [1, 8])
def test_many_threads_at_once(group: int) -> None:
    w = numbers(8, 8 // group, 3, 3, seed=1)
    data = [numbers(1, 8, 20 + seed % 3, 21, seed=seed) for seed in range(12)]
    model = node_model("Conv", (data[0], w), 21, group=group)
    expected = [ort(model, (x, w)) for x in data]

    def run(x: Any) -> Any:
        with openmp_threads(1 + len(x) % 2):
            return [interpreted(model, (x, w), is_constant=True) for _ in range(10)]

    with ThreadPoolExecutor(4) as pool:
        for found, wanted in zip(pool.map(run, data), expected, strict=True):
            for one in found:
                np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(8, 1, 3, 3), (40, 4, 3, 3)])
def test_constants_are_arranged_once_for_all_sizes(shape: tuple[int, ...]) -> None:
    weights, channels = numbers(*shape, seed=1), 8 if shape[1] == 1 else 40
    attributes = {"group": channels // shape[1], "pads": [1, 1, 1, 1]}
    first = [numbers(1, channels, 9, 9), weights]
    (node,) = node_model("Conv", first, 21, **attributes).graph.node
    run = run_of(node, 21, {"x1": weights})
    for size in (9, 24, 5, 9):
        operands = [numbers(2, channels, size, size + 1, seed=size), weights]
        expected = ort(node_model("Conv", operands, 21, **attributes), operands)
        (found,) = run(*operands)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
