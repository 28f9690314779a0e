"""Pools in the interpreter tier: equal to ONNX Runtime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from single_nodes import check, interpreted, node_model, numbers

from byoc_mlir.interpreter.ops.errors import NotInterpretedError

KINDS = ["MaxPool", "AveragePool"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("dilations", [[1, 1], [2, 1]])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]])
@pytest.mark.parametrize("strides", [[1, 1], [2, 2], [3, 2]])
def test_pools(
    kind: str, ceil_mode: int, dilations: list[int], pads: list[int], strides: list[int]
) -> None:
    check(
        kind,
        numbers(2, 3, 10, 13),
        kernel_shape=[2, 3],
        ceil_mode=ceil_mode,
        dilations=dilations,
        pads=pads,
        strides=strides,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", [[1, 1], [2, 1], [1, 3]])
@pytest.mark.parametrize("strides", [[1, 1], [2, 1], [1, 2]])
def test_windows_of_one_element(kind: str, kernel: list[int], strides: list[int]) -> None:
    x = numbers(2, 3, 10, 13)
    before = x.copy()
    check(kind, x, kernel_shape=kernel, strides=strides)
    assert np.array_equal(x, before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("auto_pad", ["VALID", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("strides", [[1, 1], [2, 3]])
def test_padding_that_is_found(kind: str, auto_pad: str, strides: list[int]) -> None:
    check(kind, numbers(1, 3, 10, 13), kernel_shape=[3, 4], auto_pad=auto_pad, strides=strides)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("opset", [7, 8, 10, 11, 12, 19, 21])
def test_versions(kind: str, opset: int) -> None:
    check(kind, numbers(1, 3, 9, 9), opset=opset, kernel_shape=[3, 3], pads=[1, 1, 0, 1])


@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.uint8])
def test_types_of_max_pools(dtype: Any) -> None:
    x = (10 * numbers(1, 3, 9, 9)).astype(np.int8).astype(dtype)
    check("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])


@pytest.mark.parametrize("kind", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(2, 3, 7), (2, 3, 9, 10), (2, 3, 4, 5, 6), (1, 1, 1, 1)])
def test_global_pools(kind: str, shape: tuple[int, ...]) -> None:
    check(kind, numbers(*shape))
    check(kind, np.moveaxis(numbers(*shape), 1, -1).reshape(shape))


@st.composite
def pools(draw: st.DrawFn) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Draws a shape and attributes of a pool."""
    rank = draw(st.integers(1, 3))

    def each(least: int, most: int) -> list[int]:
        return draw(st.lists(st.integers(least, most), min_size=rank, max_size=rank))

    kernel, dilations, strides, sizes = each(1, 4), each(1, 3), each(1, 4), each(1, 9)
    pads = [draw(st.integers(0, extent - 1)) for extent in kernel * 2]
    attributes = {"kernel_shape": kernel, "dilations": dilations, "strides": strides, "pads": pads}
    ceil_mode = draw(st.integers(0, 1))
    return (2, 3, *sizes), {**attributes, "ceil_mode": ceil_mode}


@given(pool=pools(), kind=st.sampled_from(KINDS), counts_padding=st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_pool(pool: Any, kind: str, counts_padding: bool) -> None:
    shape, attributes = pool
    x = numbers(*shape)
    if kind == "AveragePool":
        attributes = {**attributes, "count_include_pad": int(counts_padding)}
    try:
        interpreted(node_model(kind, (x,), 21, **attributes), (x,), is_constant=False)
    except NotInterpretedError:
        assume(False)
    check(kind, x, **attributes)


def test_infinities_and_the_smallest_are_kept() -> None:
    x = np.full((1, 1, 4, 4), -np.inf, np.float32)
    model = node_model("MaxPool", (x,), 21, kernel_shape=[2, 2], pads=[1, 1, 1, 1])
    assert np.all(interpreted(model, (x,), is_constant=False) == -np.inf)


@pytest.mark.parametrize("kind", KINDS)
def test_windows_of_nothing_but_padding_are_refused(kind: str) -> None:
    x = numbers(1, 1, 1)
    model = node_model(kind, (x,), 21, kernel_shape=[2], pads=[1, 2], dilations=[3])
    with pytest.raises(NotInterpretedError, match="nothing but padding"):
        interpreted(model, (x,), is_constant=False)
