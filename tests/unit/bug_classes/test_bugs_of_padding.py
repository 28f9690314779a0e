"""Pads that repeat elements: of empty tensors, several times, and after cropping."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import Arrays, check, ints, model_of, node, numbers, onnxruntime

import byoc_mlir
from byoc_mlir.errors import InvalidModelError


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [(2, 2), (0, 1)])
def test_nothing_to_repeat(mode: str, pads: tuple[int, int]) -> None:
    feeds = {"x": np.zeros(0, np.float32)}
    model = model_of([node("Pad", "x p", mode=mode)], feeds, {"p": ints(*pads)}, [], 20)
    with pytest.raises(InvalidModelError, match=r"axis 0 .* leaves none"):
        byoc_mlir.compile(model, targets=())


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_an_empty_result_needs_nothing_to_repeat(mode: str) -> None:
    nodes = [node("Pad", "x p", mode=mode), node("Pad", "y q", mode=mode)]
    feeds: Arrays = {"x": np.zeros((0, 3), np.float32), "y": numbers(3, 2)}
    model = model_of(nodes, feeds, {"p": ints(0, 1, 0, 1), "q": ints(-3, 1, 0, 0)}, [], 20)
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        shapes = [array.shape for array in executable.run(feeds).values()]
    assert shapes == [(0, 5), (0, 3)]


@pytest.mark.parametrize("mode", ["reflect", "wrap"])
@pytest.mark.parametrize("pads", [(7, 0, 1, 9), (0, 11, 2, 1), (3, 4, 3, 4)])
def test_many_times(mode: str, pads: tuple[int, ...]) -> None:
    check([node("Pad", "x p", mode=mode)], {"x": numbers(3, 4)}, {"p": ints(*pads)})


def test_a_single_element_is_its_own_reflection() -> None:
    check([node("Pad", "x p", mode="reflect")], {"x": numbers(1)}, {"p": ints(3, 5)})


@pytest.mark.parametrize("mode", ["reflect", "wrap"])
def test_a_million_times(mode: str) -> None:
    check([node("Pad", "x p", mode=mode)], {"x": numbers(2)}, {"p": ints(1000000, 1)})


@pytest.mark.parametrize("mode", ["edge", "wrap"])
@pytest.mark.parametrize("pads", [(2, -4), (-1, 4), (-4, 2)])
def test_what_is_cropped_is_not_repeated(mode: str, pads: tuple[int, int]) -> None:
    nodes, constants = [node("Pad", "x p", mode=mode)], {"p": ints(*pads)}
    check(nodes, {"x": numbers(5)}, constants, oracle=onnxruntime, opset=19)


def test_what_is_cropped_is_not_reflected() -> None:
    feeds = {"x": np.arange(5, dtype=np.float32)}
    reflect = node("Pad", "x p", "y", mode="reflect")
    model = model_of([reflect], feeds, {"p": ints(-1, 4)}, [], 20)
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        assert executable.run(feeds)["y"].tolist() == [1, 2, 3, 4, 3, 2, 1, 2]
