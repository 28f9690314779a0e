"""Values under several names, ops that pass their input on, results that are views."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import BOTH, check, ints, model_of, node, numbers, onnxruntime

import byoc_mlir

X = numbers(3, 4)


def test_ops_of_one_input() -> None:
    nodes = [
        node("Concat", "x", axis=0),
        node("Concat", "x", axis=-1),
        *(node(op, "x") for op in ("Max", "Min", "Sum", "Mean")),
        node("Relu", "x", "r"),
        node("Concat", "r", "c", axis=0),
        node("Add", "c c"),
        node("Concat", "c c", axis=0),
    ]
    check(nodes, {"x": X}, targets=BOTH, oracle=onnxruntime)


def test_a_single_input_concat_is_not_the_input_itself() -> None:
    model = model_of([node("Concat", "x", "y", axis=0)], {"x": X}, {}, (), 20)
    x = X.copy()
    y = byoc_mlir.compile(model, targets=()).run({"x": x})["y"]
    x[:] = 0
    np.testing.assert_array_equal(y, X)


def test_an_input_is_an_output() -> None:
    nodes = [node("Identity", "x", "same"), node("Relu", "same", "y")]
    check(nodes, {"x": X}, outputs="same y x", targets=BOTH)


def test_an_output_under_several_names() -> None:
    nodes = [
        node("Relu", "x", "r"),
        node("Identity", "r", "again"),
        node("Identity", "again", "thrice"),
        node("Neg", "again", "n"),
    ]
    check(nodes, {"x": X}, outputs="r again thrice n", targets=BOTH)


def test_outputs_own_their_memory() -> None:
    nodes = [node("Relu", "x", "r"), node("Identity", "r", "again")]
    model = model_of(nodes, {"x": X}, {}, ["r", "again"], 20)
    found = byoc_mlir.compile(model, targets=()).run({"x": X})
    found["r"][:] = -1
    assert (found["again"] >= 0).all()


def test_views_that_are_outputs() -> None:
    nodes = [
        node("Reshape", "x shape", "reshaped"),
        node("Transpose", "reshaped", "turned"),
        node("Relu", "x", "r"),
        node("Reshape", "r shape", "r_reshaped"),
        node("Slice", "r one two", "part"),
        node("Split", "r", "left right", axis=1, num_outputs=2),
        node("Neg", "left", "n"),
    ]
    outputs = "reshaped turned r r_reshaped part left right n x"
    constants = {"shape": ints(4, 3), "one": ints(1), "two": ints(2)}
    check(nodes, {"x": X}, constants, outputs=outputs, targets=BOTH)


def test_constants_that_are_outputs() -> None:
    table = np.arange(40, dtype=np.float32)
    nodes = [node("Identity", "k", "copy"), node("Relu", "x", "r")]
    check(nodes, {"x": X}, {"k": table}, outputs="copy r k")


def test_inputs_that_nothing_reads() -> None:
    check([node("Relu", "x", "r")], {"x": X, "unused": numbers(3)}, targets=BOTH)


def test_a_scatter_leaves_its_operand_alone() -> None:
    nodes = [
        node("Neg", "x", "n"),
        node("ScatterElements", "n i u", "s"),
        node("Add", "n s", "a"),
        node("ScatterElements", "x i u", "direct"),
    ]
    feeds = {"x": X, "i": np.zeros((1, 4), np.int64), "u": numbers(1, 4, seed=1)}
    check(nodes, feeds, outputs="s a n direct x")


def test_one_operand_twice() -> None:
    nodes = [node("Add", "x x", "a"), node("Mul", "a a", "b"), node("Sub", "a b", "c")]
    nodes += [node("Add", "c x", "d"), node("Add", "d x", "e"), node("MatMul", "q q", "m")]
    check(nodes, {"x": X, "q": numbers(4, 4)}, targets=BOTH)


@pytest.mark.parametrize("outputs", ["m r", "a r", "m a r", "r"])
def test_what_is_inside_of_a_fusion_is_an_output(outputs: str) -> None:
    nodes = [node("MatMul", "x w", "m"), node("Add", "m b", "a"), node("Relu", "a", "r")]
    constants = {"w": numbers(4, 5), "b": numbers(5)}
    check(nodes, {"x": X}, constants, outputs=outputs, targets=BOTH)


def test_values_outlive_their_buffers() -> None:
    """Checks that results stay right while the arena is reused for later values."""
    nodes = [node("Exp", "x", "a0")]
    nodes += [node("Transpose", f"a{n}", f"a{n + 1}") for n in range(6)]
    nodes += [node("Add", "a6 x", "y"), node("Sub", "a2 a4", "z")]
    check(nodes, {"x": X}, outputs="y z a3 a6", targets=BOTH)
