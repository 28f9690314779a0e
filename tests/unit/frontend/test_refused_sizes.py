"""Sizes that contradict a model: refused before anything runs, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from onnx import parser

import byoc_mlir
from byoc_mlir.errors import InvalidInputError, InvalidModelError
from byoc_mlir.runtime import Executable

Shapes = Mapping[str, tuple[int, ...]]

RESHAPE = "s = Constant<value_ints=[-1, 3]>() [rows] z = Reshape(x, s)"
SHORTER = """
    five = Constant<value_ints=[5]>()
    n = Shape<start=0, end=1>(x)
    less = Sub(n, five)
    s = Concat<axis=0>(less, five)
    [filled] z = ConstantOfShape(s)
"""


def _compiled(inputs: str, nodes: str) -> Executable:
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
        agraph ({inputs}) => (float[a, b] z) {{ {nodes} }}"""
    return byoc_mlir.compile(parser.parse_model(text), (), threads=1)


def _run(executable: Executable, shapes: Shapes) -> None:
    executable.run({name: np.ones(shape, np.float32) for name, shape in shapes.items()})


@pytest.mark.parametrize(
    ("inputs", "nodes", "right", "wrong", "said"),
    [
        (
            "float[n, 4] x, float[n, 4] y",
            "[sum] z = Add(x, y)",
            {"x": (3, 4), "y": (3, 4)},
            {"x": (3, 4), "y": (5, 4)},
            r"dimension 0 of input 'y' is 'n', which is 3 in input 'x'; found 5",
        ),
        (
            "float[n, 4] x, float[k, 4] y",
            "[sum] z = Add(x, y)",
            {"x": (3, 4), "y": (3, 4)},
            {"x": (3, 4), "y": (5, 4)},
            r"node 'sum' \(Add\).*; found n = 3, k = 5 \(x: float32\[n, 4\]; y: float32\[k, 4\]\)"
            r"; expected n == k \(sum\)",
        ),
        (
            "float[n, 4] x",
            RESHAPE,
            {"x": (3, 4)},
            {"x": (2, 4)},
            r"node 'rows' \(Reshape\).* does not hold the 8 elements .*; found n = 2 .*; expected",
        ),
        (
            "float[n, 4] x",
            SHORTER,
            {"x": (7, 4)},
            {"x": (3, 4)},
            r"node 'filled' .*the shape is \[-2, 5\].*; found n = 3 \(x: float32\[n, 4\]\)",
        ),
    ],
    ids=["one name, two sizes", "two inputs", "reshape", "negative"],
)
def test_sizes_that_contradict_the_model_are_refused(
    inputs: str, nodes: str, right: Shapes, wrong: Shapes, said: str
) -> None:
    with _compiled(inputs, nodes) as executable:
        _run(executable, right)
        with pytest.raises(InvalidInputError, match=said):
            _run(executable, wrong)
        with pytest.raises(InvalidInputError, match=said):
            executable.warmup(wrong)
        _run(executable, right)


def test_what_no_size_makes_right_may_be_the_model() -> None:
    with (
        _compiled("float[n, 4] x, float[n, 5] y", "[sum] z = Add(x, y)") as executable,
        pytest.raises(InvalidModelError, match=r"node 'sum' .*; found n = 3 "),
    ):
        _run(executable, {"x": (3, 4), "y": (3, 5)})
