"""Broadcasting, in both directions and in the middle."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import BOTH, check, ints, node, numbers, onnxruntime

PAIRS = [
    ((3, 1), (1, 4)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 3, 4)),
    ((1,), (2, 3)),
    ((2, 1, 4), (3, 1)),
    ((3, 1, 1), (2, 3, 4, 5)),
    ((1, 1, 1, 1), (2,)),
    ((5,), (1,)),
    ((2, 3, 4, 5), (3, 1, 1)),
    ((1, 3, 1, 1), (2, 3, 4, 5)),
]


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Less"])
def test_two_operands(op: str) -> None:
    feeds = {}
    for number, (left, right) in enumerate(PAIRS):
        feeds[f"a{number}"] = numbers(*left, seed=number)
        feeds[f"b{number}"] = numbers(*right, seed=number + 50)
    nodes = [node(op, f"a{number} b{number}") for number in range(len(PAIRS))]
    check(nodes, feeds, targets=BOTH, tolerance=1e-4)


def test_slopes_of_prelu_broadcast_one_way() -> None:
    pairs = [pair for pair in PAIRS if np.broadcast_shapes(*pair) == pair[0]]
    feeds, nodes = {}, []
    for number, (left, right) in enumerate(pairs):
        feeds[f"a{number}"] = numbers(*left, seed=number)
        feeds[f"b{number}"] = numbers(*right, seed=number + 50)
        nodes.append(node("PRelu", f"a{number} b{number}"))
    assert len(pairs) == 3
    check(nodes, feeds, targets=BOTH)


def test_three_operands() -> None:
    shapes: list[tuple[tuple[int, ...], ...]] = [
        ((2, 1), (1, 3), (2, 3)),
        ((1,), (2, 3), (3,)),
        ((2, 3, 4), (4,), ()),
        ((3, 1), (), (4,)),
        ((1, 1, 1), (2,), (3, 1)),
    ]
    feeds, nodes = {}, []
    for number, (c, x, y) in enumerate(shapes):
        feeds[f"c{number}"] = np.asarray(numbers(*c, seed=number) > 0)
        feeds[f"x{number}"] = np.asarray(numbers(*x, seed=number))
        feeds[f"y{number}"] = np.asarray(numbers(*y, seed=number + 50))
        nodes.append(node("Where", f"c{number} x{number} y{number}"))
        nodes += [
            node(op, f"x{number} y{number} x{number}") for op in ("Max", "Min", "Sum", "Mean")
        ]
    check(nodes, feeds, oracle=onnxruntime)


def test_reductions_and_places_after_broadcasting() -> None:
    nodes = [
        node("Add", "a b", "sum"),
        node("ArgMax", "sum", axis=1),
        node("ArgMax", "sum", axis=0, keepdims=0),
        node("ReduceSum", "sum axis", keepdims=0),
        node("Softmax", "sum", axis=0),
    ]
    check(nodes, {"a": numbers(3, 1), "b": numbers(1, 4)}, {"axis": ints(0)})


def test_expand_takes_ones_from_both_sides() -> None:
    nodes = [node("Expand", f"{name} to_{name}") for name in "abc"]
    feeds = {"a": numbers(3, 1), "b": numbers(2, 3), "c": numbers(1)}
    constants = {"to_a": ints(3, 4), "to_b": ints(1, 1), "to_c": ints(2, 1, 3)}
    check(nodes, feeds, constants)


def test_sums_after_a_convolution() -> None:
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Add", "c channel"),
        node("Add", "cell c"),
        node("Mul", "c row"),
        node("Add", "c more"),
    ]
    constants = {
        "w": numbers(3, 2, 3, 3),
        "channel": numbers(3, 1, 1),
        "cell": numbers(1, 1, 1, 1),
        "row": numbers(5),
    }
    feeds = {"x": numbers(1, 2, 4, 5), "more": numbers(2, 1, 1, 1)}
    check(nodes, feeds, constants, targets=BOTH, tolerance=1e-4)
