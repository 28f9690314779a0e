"""Values that ONNX does not allow: refused with the node's name and the accepted values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from helpers.models import model_of
from one_node_models import X, one
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects import arith

import byoc_mlir
from byoc_mlir.dialects.boundary import node_of
from byoc_mlir.errors import ByocError, InternalError, InvalidModelError, LimitExceededError

_IMAGE = (1, 1, 4, 4)


def _scan() -> onnx.ModelProto:
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "ab"]
    body = helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "b", info[:1], info[1:])
    return one("Scan", (4, 1), num_scan_inputs=2**40, body=body)


def _range(start: float, limit: float, delta: float) -> onnx.ModelProto:
    numbers = {"a": np.float32(start), "b": np.float32(limit), "d": np.float32(delta)}
    nodes = [
        helper.make_node("Range", ["a", "b", "d"], ["r"], "n"),
        helper.make_node("ReduceSum", ["r"], ["s"]),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    return model_of(nodes, {"x": [3]}, numbers)


CASES: dict[str, tuple[onnx.ModelProto, type[ByocError], str]] = {
    "Tile": (one("Tile", constants={"s": [-1]}), InvalidModelError, r"shape \[-1, 3\]"),
    "Pad": (one("Pad", constants={"s": [-2, -2]}), InvalidModelError, r"crops more than"),
    "Range by 0": (_range(0, 10, 0), InvalidModelError, "no delta of 0"),
    "Range to nan": (_range(0, np.nan, 1), InvalidModelError, "accepted are finite numbers"),
    "Range to 1e18": (_range(0, 1e18, 1), LimitExceededError, "constant_bytes"),
    "Resize": (
        one("Resize", _IMAGE, {"s": np.array([1, 1, np.nan, 2], np.float32)}, inputs="x  s"),
        InvalidModelError,
        "accepted are finite numbers above 0",
    ),
    "OneHot": (
        one("OneHot", constants={"d": 2**55, "v": X[:2]}, element_type=TensorProto.INT64),
        LimitExceededError,
        "the classes of a OneHot",
    ),
    "DFT": (
        one("DFT", (1, 3, 1), {"n": np.int64(-3)}),
        InvalidModelError,
        r"dft_length is \[-3\], accepted is one number, 1 or more",
    ),
    "Compress by floats": (
        model_of([helper.make_node("Compress", ["x", "x"], ["y"], "n")], {"x": [3]}),
        InvalidModelError,
        r"input 'condition' is tensor\(float\), accepted are tensor\(bool\)",
    ),
    "NonZero along an axis": (
        one("NonZero", axis=1),
        InvalidModelError,
        r"\(NonZero\): there is no attribute 'axis', accepted are none",
    ),
    "NonMaxSuppression without scores": (
        one("NonMaxSuppression", (1, 4, 4)),
        InvalidModelError,
        "it has 1 inputs, accepted are 2 to 5",
    ),
    "Compress along an axis of text": (
        one("Compress", (3,), {"c": np.array([True, False, True])}, inputs="x c", axis="a"),
        InvalidModelError,
        "attribute 'axis' is STRING, accepted is INT",
    ),
    "EyeLike": (one("EyeLike"), InvalidModelError, "1 dimensions, accepted are 2"),
    "nothing beside a long axis": (
        one("Expand", (0, 1), {"s": np.array([0, 2**62])}),
        LimitExceededError,
        r"shape \[0, 4611686018427387904\]: 18446744073709551616, the limit is",
    ),
    "a constant of nothing beside a long axis": (
        one("ConstantOfShape", inputs="s", constants={"s": np.array([0, 2**61])}),
        LimitExceededError,
        "constant_bytes",
    ),
    "ConvTranspose": (
        one("ConvTranspose", _IMAGE, {"w": np.ones((1, 1, 3, 3), "f")}, strides=[2**30] * 2),
        LimitExceededError,
        "tensor_bytes",
    ),
    "SplitToSequence": (
        one("SplitToSequence", constants={"s": 0}),
        InvalidModelError,
        "split is 0, accepted is one number of 1 and more",
    ),
    "Scan": (_scan(), InvalidModelError, "num_scan_inputs is 1099511627776, accepted are 1 to 1"),
    "AveragePool": (
        one("AveragePool", _IMAGE, kernel_shape=[2**31] * 2, pads=[2**30] * 4, count_include_pad=1),
        LimitExceededError,
        "tensor_bytes",
    ),
    "Attention": (
        one("Attention", (1, 3, 8), inputs="x x x", opset=23, q_num_heads=7, kv_num_heads=0),
        InvalidModelError,
        r"\(Attention\): Q has shape \[1, 3, 8\], 7 heads do not fit",
    ),
    "Attention of other heads": (
        one("Attention", (1, 3, 8), inputs="x x x", opset=23, q_num_heads=8),
        InvalidModelError,
        r"\(Attention\): K has shape \[1, 3, 8\], 0 heads do not fit",
    ),
    "RotaryEmbedding": (
        one(
            "RotaryEmbedding",
            (1, 3, 8),
            inputs="x c s",
            opset=23,
            constants=dict.fromkeys("cs", np.ones((1, 3, 2), np.float32)),
            num_heads=7,
        ),
        InvalidModelError,
        r"\(RotaryEmbedding\): in its body, with num_heads = 7: .*\[1, 3, 7, -1\]",
    ),
    "ConstantOfShape": (
        one(
            "ConstantOfShape",
            inputs="s",
            constants={"s": np.array([2])},
            value=numpy_helper.from_array(X[:2], "v"),
        ),
        InvalidModelError,
        "value has 2 elements, accepted is one",
    ),
    "Compress": (
        one("Compress", (3, 9), {"c": np.ones(3, bool)}, axis=-(2**31)),
        InvalidModelError,
        "axis is -2147483648",
    ),
    "Gather": (
        one("Gather", constants={"i": np.array([[0, -3], [2, -4]])}),
        InvalidModelError,
        r"an index is -4, accepted are -3 to 2 on an axis of 3",
    ),
    "GatherElements": (
        one("GatherElements", constants={"i": np.array([3])}),
        InvalidModelError,
        "is 3",
    ),
    "GatherND": (
        one("GatherND", (2, 5), constants={"i": np.array([[1, 4], [4, 1]])}),
        InvalidModelError,
        "an index is 4, accepted are -2 to 1",
    ),
    "ScatterElements": (
        one("ScatterElements", constants={"i": np.array([2**62]), "u": X[:1]}),
        InvalidModelError,
        f"an index is {2**62}",
    ),
    "ScatterND": (
        one("ScatterND", (2, 3), constants={"i": np.array([[-3]]), "u": X[None]}),
        InvalidModelError,
        "an index is -3, accepted are -2 to 1",
    ),
    "MaxUnpool": (
        one(
            "MaxUnpool",
            _IMAGE,
            {"i": np.zeros(_IMAGE, np.int64)},
            kernel_shape=[2, 2],
            strides=[-1, 2],
        ),
        InvalidModelError,
        r"strides \[-1, 2\], accepted are 1 and more",
    ),
    "large MaxUnpool": (
        one(
            "MaxUnpool",
            _IMAGE,
            {"i": np.zeros(_IMAGE, np.int64)},
            kernel_shape=[2, 2],
            strides=[2**30] * 2,
        ),
        LimitExceededError,
        "tensor_bytes",
    ),
    "Sign of bool": (
        one("Sign", element_type=TensorProto.BOOL),
        InvalidModelError,
        r"node 'n' \(Sign\): input 'input' is tensor\(bool\), accepted are tensor\(bfloat16\),",
    ),
    "Sign of a constant bool": (
        one("Sign", constants={"b": True}, inputs="b"),
        InvalidModelError,
        r"input 'input' is tensor\(bool\)",
    ),
    "Add of two types": (
        one("Add", constants={"d": np.ones(3)}),
        InvalidModelError,
        r"input 'B' is tensor\(double\), accepted is tensor\(float\), as for the values before",
    ),
    "Concat of two types": (
        one("Concat", constants={"i": [1]}, axis=0),
        InvalidModelError,
        r"input 'inputs' is tensor\(int64\), accepted is tensor\(float\)",
    ),
    "SequenceAt of a tensor": (
        one("SequenceAt", constants={"i": 0}),
        InvalidModelError,
        "input 'input_sequence' is tensor\\(float\\), accepted are a sequence",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refusal(name: str) -> None:
    built, kind, message = CASES[name]
    with pytest.raises(kind, match=message) as caught:
        byoc_mlir.compile(built, targets=())
    assert not isinstance(caught.value, InternalError)
    assert caught.value.node == "n"
    assert caught.value.stage is not None


@pytest.mark.parametrize(
    "built",
    [
        one("Cast", to=2**40),
        one("DepthToSpace", blocksize=2),
        one("SpaceToDepth", (), blocksize=2),
        one("Trilu", ()),
        one("LayerNormalization", (), {"s": X}),
        one("Col2Im", (3,), {"i": np.array([2, 2], np.int64), "b": np.array([2, 2], np.int64)}),
    ],
    ids=lambda built: built.graph.node[0].op_type,
)
def test_operands_that_onnx_does_not_allow(built: onnx.ModelProto) -> None:
    with pytest.raises(InvalidModelError, match="node 'n'") as caught:
        byoc_mlir.compile(built, targets=())
    assert caught.value.node == "n"


def test_ops_of_other_domains_are_refused_when_compiling() -> None:
    node = helper.make_node("Frobnicate", ["x"], ["y"], "c", domain="com.example")
    built = model_of([node], {"x": ["n", 4]})
    built.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(ByocError, match=r"c \(com.example.Frobnicate\): not supported: domain"):
        byoc_mlir.compile(built, targets=())


def test_attributes_of_a_symbolic_model_are_checked_when_compiling() -> None:
    with pytest.raises(InvalidModelError, match="there is no attribute 'fly'"):
        byoc_mlir.compile(one("Relu", ("n", 3), fly=1), targets=())


def test_operands_of_wrong_shape() -> None:
    weights: dict[str, Any] = {"w": np.ones((4, 5), "f")}
    with pytest.raises(InvalidModelError) as caught:
        byoc_mlir.compile(one("MatMul", (2, 3), weights), targets=())
    assert caught.value.node == "n"


def test_an_op_whose_constructor_failed_has_no_node() -> None:
    def make() -> None:
        op = object.__new__(arith.CmpiOp)  # as `self` in the frame of its `__init__`
        raise ValueError(type(op).__name__)

    with pytest.raises(ValueError, match="CmpiOp") as failed:
        make()
    assert node_of(failed.value) is None
