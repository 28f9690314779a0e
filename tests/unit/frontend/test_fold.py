"""Nodes of constants: computed at import, by which evaluator, or left to run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from onnx import NodeProto, TensorProto, numpy_helper
from onnx_models import model_of, node
from xdsl.dialects.func import FuncOp

from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.errors import UnsupportedModelError
from byoc_mlir.frontend import ImportedModel, fold, import_model

Array = np.ndarray[Any, np.dtype[Any]]
WORDS = np.array(["1.5", "b", "-2"], object)


def _imported(nodes: list[NodeProto], **constants: ArrayLike) -> ImportedModel:
    initializers = [
        numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()
    ]
    return import_model(model_of(nodes, initializers=initializers))


def _folded(nodes: list[NodeProto], **constants: ArrayLike) -> Array:
    model = _imported(nodes, **constants)
    assert {each.status for each in model.nodes} == {"folded"}
    (main,) = (op for op in model.module.walk() if isinstance(op, FuncOp))
    (result,) = evaluate(main, [np.zeros((2, 3), np.float32)])
    return result


@pytest.mark.parametrize(
    ("computed", "constants", "wanted"),
    [
        (node("Cast", "c", "y", to=TensorProto.UINT8), {"c": np.array([300.7], np.float32)}, [44]),
        (node("Div", "c d", "y"), {"c": [5, -7], "d": [0, 2]}, [0, -3]),
        (node("GatherElements", "c i", "y"), {"c": [5, 6, 7], "i": [-1, 0]}, [7, 5]),
        (node("NonZero", "c", "y"), {"c": [[0.0, np.nan], [-0.0, 2]]}, [[0, 1], [1, 1]]),
        (node("NonZero", "c", "y"), {"c": 3}, np.zeros((0, 1))),
        (node("NonZero", "c", "y"), {"c": 0}, np.zeros((0, 0))),
        (node("Unique", "c", "y first at counts"), {"c": [[3, 1], [3, 1]]}, [1, 3]),
        (node("Unique", "c", "y first at counts", sorted=0), {"c": [[3, 1], [3, 1]]}, [3, 1]),
        (node("Unique", "c", "d first y", axis=1, sorted=0), {"c": [[3, 1, 3]] * 2}, [0, 1, 0]),
        (node("Unique", "c", "d y", axis=-1), {"c": [[3, 1, 3, 1], [4, 5, 4, 0]]}, [3, 1, 0]),
        (node("Unique", "c", "d first at y"), {"c": [2, 1, 2]}, [1, 2]),
        (node("Unique", "c", "y", axis=0), {"c": np.zeros((2, 0))}, np.zeros((1, 0))),
        (node("Unique", "c", "y"), {"c": np.zeros((2, 0))}, np.zeros(0)),
        (node("Compress", "c i", "y"), {"c": [5, 6, 7], "i": [True, False, True]}, [5, 7]),
        (node("ConstantOfShape", "c", "y"), {"c": [2]}, [0, 0]),
        (
            node("QuantizeLinear", "c s z", "y"),
            {"c": np.array([1, 900, -3], np.float32), "s": np.float32(0.5), "z": np.uint8(3)},
            [5, 255, 0],
        ),
        (
            node("NonMaxSuppression", "b s n", "y"),
            {
                "b": np.array([[[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3]]], np.float32),
                "s": np.array([[[0.5, 0.9, 0.7]]], np.float32),
                "n": np.array([3]),
            },
            [[0, 0, 1], [0, 0, 2]],
        ),
    ],
    ids=lambda case: getattr(case, "op_type", ""),
)
def test_computed_op_by_op(
    monkeypatch: pytest.MonkeyPatch,
    computed: NodeProto,
    constants: dict[str, ArrayLike],
    wanted: list[Any],
) -> None:
    def reference_outputs(*_: object) -> None:
        raise AssertionError("ONNX's evaluator is asked for what has a counterpart in the IR")

    monkeypatch.setattr(fold, "reference_outputs", reference_outputs)
    np.testing.assert_array_equal(_folded([computed], **constants), wanted)


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ([node("Equal", "words b", "y")], [False, True, False]),
        ([node("StringConcat", "words b", "t"), node("Equal", "t bb", "y")], [False, True, False]),
        (
            [node("Gather", "words ends", "t"), node("Cast", "t", "y", to=TensorProto.FLOAT)],
            [1.5, -2],
        ),
        ([node("Unique", "words", "t"), node("Equal", "t b", "y")], [False, False, True]),
    ],
    ids=["Equal", "StringConcat", "Cast", "Unique"],
)
def test_computed_by_onnx(nodes: list[NodeProto], wanted: list[Any]) -> None:
    b, bb = np.array("b", object), np.array("bb", object)
    constants = {"words": WORDS, "b": b, "bb": bb, "ends": np.array([0, 2])}
    np.testing.assert_array_equal(_folded(nodes, **constants), wanted)


def test_large_results_are_left_to_run_time() -> None:
    nodes = [node("Expand", "i s", "c"), node("Gather", "c i", "y")]
    model = _imported(nodes, s=[1 << 12, 1 << 13], i=0)
    assert [each.status for each in model.nodes] == ["imported", "imported"]


def test_large_results_are_not_asked_of_onnx() -> None:
    nodes = [node("MelWeightMatrix", "n n n low high", "m"), node("ReduceSum", "m", "y")]
    with pytest.raises(UnsupportedModelError, match="could not be computed"):
        _imported(nodes, n=1 << 24, low=np.float32(0), high=np.float32(1))
