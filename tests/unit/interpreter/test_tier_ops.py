"""Table of the interpreter's ops: accepted nodes give ONNX Runtime's results, others are
refused."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import onnx
import pytest
from agreement import check_node, decision, floats, integers
from helpers.models import node_model
from onnx import TensorProto, helper, numpy_helper

from byoc_mlir.interpreter.ops import OPS
from byoc_mlir.interpreter.tier_ops import TIER_OPS, unknown
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import add_node

SEPARATE = frozenset(
    (
        *("MatMul", "Gemm", "Conv", "ConvTranspose"),
        *("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"),
        *("SimplifiedLayerNormalization", "com.microsoft.GatherBlockQuantized"),
    )
)
"""Ops with separate tests."""
FEW = {"Attention": 2, "Constant": 0, "NonZero": 0, "RMSNormalization": 2}
"""Minimum number of random nodes that agree, for ops that ONNX Runtime, or few
opsets, support."""


@pytest.mark.parametrize("op_type", sorted(TIER_OPS.keys() - SEPARATE))
def test_random_nodes(op_type: str) -> None:
    """Checks nodes of all opsets, attributes, types and sizes that the fuzzer generates."""
    counts: Counter[str] = Counter()
    for number in range(24):
        rng = Random(f"{op_type} {number}")
        graph = RandomGraph(rng, rng.randint(7, 28), rng.choice(["plain", "integral"]))
        domain, _, name = op_type.rpartition(".")
        if not add_node(graph, name, domain):
            continue
        model = graph.model()
        if not model.graph.output:
            continue
        found = decision(model, graph.feeds)
        assert isinstance(found, str), f"node {number} of opset {graph.opset}: {found}"
        counts[found] += 1
    assert counts["agrees"] >= FEW.get(op_type, 3)


@pytest.mark.parametrize("opset", [7, 11, 13, 18, 28])
def test_old_and_new_forms(opset: int) -> None:
    """Checks attributes that became operands in later opsets."""
    x, axes = floats(2, 1, 3, 1), [1, -1] if opset >= 11 else [1, 3]
    given = opset >= 13
    operands = (x, integers(*axes)) if given else (x,)
    attributes = {} if given else {"axes": axes}
    check_node("Squeeze", *operands, opset=opset, **attributes)
    check_node("Unsqueeze", *operands, opset=opset, **attributes)
    check_node("ReduceSum", *operands, opset=opset, keepdims=0, **attributes)
    check_node("Softmax", floats(2, 3, 4), opset=opset)
    check_node("LogSoftmax", floats(2, 3, 4), opset=opset, axis=0)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 0, 2), (1,)])
def test_no_elements_and_one(shape: tuple[int, ...]) -> None:
    x = floats(*shape)
    for op_type in ("Relu", "Erf", "Sigmoid", "Neg", "Sqrt", "HardSwish", "Tanh"):
        check_node(op_type, x)
    for op_type in ("Add", "Mul", "Max", "Less"):
        check_node(op_type, x, x)
    check_node("Softmax", x, axis=-1)
    check_node("ReduceSum", x, integers(0))
    check_node("Concat", x, x, axis=0)
    check_node("Transpose", x)


def test_no_number_overflows_on_its_way() -> None:
    x = np.array([-1000, -90, -5, -0.0, 0, 1e-30, 5, 90, 1000], np.float32)
    for op_type in ("Sigmoid", "Softplus", "Tanh", "Erf", "HardSigmoid", "Elu", "Selu", "Exp"):
        check_node(op_type, x)
    check_node("Softmax", x)
    check_node("LogSoftmax", x)


def test_division_of_integers_cuts() -> None:
    one, other = integers(7, -7, 7, -7, 6), integers(2, 2, -2, -2, -3)
    check_node("Div", one, other)
    check_node("Mod", one, other)
    check_node("Mod", one, other, fmod=1)


def test_truths_are_equal() -> None:
    one, other = np.array([True, False, True]), np.array([[True], [False]])
    check_node("Equal", one, other)


def test_casts() -> None:
    x = np.array([-3.7, -0.0, 0.4, 2.5, 1e6], np.float32)
    for to in (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.DOUBLE):
        check_node("Cast", x, to=to)
    check_node("Cast", integers(1 << 40, -1, 0), to=TensorProto.INT32)
    check_node("Cast", np.array([True, False]), to=TensorProto.FLOAT)
    check_node("Cast", np.array([255, 1], np.uint8), to=TensorProto.FLOAT)


WIDE = np.ones((2, 2))
BYTES, HALVES = np.array([[1, 2]], np.int8), np.ones((1, 2), np.float16)
GRU_OPERANDS = (floats(3, 2, 4), floats(1, 15, 4), floats(1, 15, 5))
LSTM_OPERANDS = (floats(3, 2, 4), floats(1, 20, 4), floats(1, 20, 5))
IMAGE, CHANNELS = floats(1, 2, 3, 3), np.ones(2, np.float32)


@pytest.mark.parametrize(
    ("op_type", "operands", "others", "reason"),
    [
        ("Det", [floats(2, 2)], {}, "not known"),
        ("Resize", [IMAGE, None, np.ones(4, np.float32)], {}, "not known"),
        ("Relu", [BYTES], {}, "type"),
        ("Add", [HALVES, HALVES], {}, "type"),
        ("Sum", [integers(1), integers(2)], {}, "the types [7, 7]"),
        ("Pow", [integers(3), integers(2)], {}, "the type 7"),
        ("ReduceMean", [integers(3, 4)], {}, "the type 7"),
        ("Range", [floats(), floats(), floats()], {}, "the type 1"),
        ("Cast", [floats(2)], {"to": TensorProto.UINT8}, "bytes of floats"),
        ("Cast", [floats(2)], {"to": TensorProto.STRING}, "of type 8"),
        ("Cast", [floats(2)], {"to": TensorProto.FLOAT16}, "of type 10"),
        ("Constant", [], {"value": numpy_helper.from_array(HALVES)}, "of type 10"),
        ("Constant", [], {"value_strings": [b"a"]}, "value_strings"),
        (
            "ConstantOfShape",
            [integers(2)],
            {"value": numpy_helper.from_array(BYTES[0, :1])},
            "type 3",
        ),
        ("Mod", [floats(2), floats(2)], {"opset": 10, "fmod": 0}, "remainders of floats"),
        ("Pad", [IMAGE, integers(*[1] * 8)], {"mode": "wrap", "opset": 19}, "mode wrap"),
        ("ReduceL1", [IMAGE], {"noop_with_empty_axes": 1, "opset": 18}, "noop_with_empty_axes"),
        ("TopK", [floats(4), integers(2)], {"outputs": 2, "sorted": 0}, "sorted=0"),
        ("BatchNormalization", [IMAGE, *[CHANNELS] * 4], {"training_mode": 1}, "training_mode"),
        ("BatchNormalization", [IMAGE, *[CHANNELS] * 4], {"opset": 8, "spatial": 0}, "spatial"),
        (
            "BatchNormalization",
            [IMAGE, WIDE[0], WIDE[0], CHANNELS, CHANNELS],
            {},
            "types that differ",
        ),
        ("LayerNormalization", [IMAGE, floats(3)], {"stash_type": 10}, "stash_type"),
        ("LayerNormalization", [IMAGE, floats(3)], {"outputs": 2}, "result 1"),
        ("Dropout", [IMAGE], {"outputs": 2}, "result 1"),
        ("Dropout", [IMAGE, floats(), np.array(True)], {}, "operand 2"),
        ("GRU", GRU_OPERANDS, {"hidden_size": 5, "clip": 1.5}, "clip"),
        ("GRU", GRU_OPERANDS, {"hidden_size": 5, "activations": ["Relu", "Tanh"]}, "activations"),
        ("LSTM", LSTM_OPERANDS, {"hidden_size": 5, "input_forget": 1}, "input_forget"),
        ("LSTM", [*LSTM_OPERANDS, *[None] * 4, floats(1, 15)], {"hidden_size": 5}, "peepholes"),
        ("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "storage_order": 1}, "storage_order"),
        ("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "outputs": 2}, "result 1"),
        ("MatMul", [integers(1, 2), integers(3, 4)], {}, "the type 7"),
        ("Gemm", [WIDE, WIDE], {}, "the type 11"),
        ("Conv", [WIDE[None, None], WIDE[None, None]], {}, "the type 11"),
        ("Relu", [IMAGE], {"opset": 6}, "version 6"),
        ("Gelu", [IMAGE], {"opset": 17}, "not known"),
        ("Expand", [IMAGE, integers(1)], {"opset": 7}, "not known"),
        ("Add", [floats(2), integers(1)], {}, "the types [1, 7]"),
        ("Reshape", [floats(2), floats(1)], {}, "the types [1, 1]"),
        ("Where", [floats(2), floats(2), floats(2)], {}, "types [1, 1, 1]"),
    ],
)
def test_refused(op_type: str, operands: list[np.ndarray], others: dict, reason: str) -> None:
    model, _ = node_model(op_type, operands, **others)
    assert reason in unknown(model)


def test_later_opsets_are_refused() -> None:
    model, _ = node_model("Relu", [floats(2)])
    model.opset_import[0].version = 29
    assert "version 29" in unknown(model)


def test_other_domains_are_refused() -> None:
    model, _ = node_model("Relu", [floats(2)])
    model.graph.node[0].domain = "com.example"
    assert "not known" in unknown(model)


def test_types_are_followed() -> None:
    """Checks the types of a node's inputs, which the node before it computes."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = onnx.ValueInfoProto(name="y")
    for to, problem in ((TensorProto.FLOAT, ""), (TensorProto.INT64, "the types [7]")):
        nodes = [
            helper.make_node("Cast", ["x"], ["z"], to=to),
            helper.make_node("Identity", ["z"], ["w"]),
            helper.make_node("Sqrt", ["w"], ["y"]),
        ]
        model = helper.make_model(helper.make_graph(nodes, "two", [x], [y]))
        model.opset_import[0].version = 17
        found = unknown(model)
        assert problem in found
        assert bool(problem) == bool(found)


def test_what_nothing_makes_is_refused() -> None:
    model, _ = node_model("Add", [floats(2), floats(2)])
    model.graph.node[0].input[1] = "nothing"
    assert "the types [1, 0]" in unknown(model)


def test_sequences_are_refused() -> None:
    model, _ = node_model("Relu", [floats(2)])
    model.graph.input[0].type.sequence_type.elem_type.tensor_type.elem_type = TensorProto.FLOAT
    assert unknown(model)


def test_functions_are_refused() -> None:
    model, _ = node_model("Relu", [floats(2)])
    model.functions.add().name = "Relu"
    assert "functions" in unknown(model)


def test_the_ops_that_are_known_are_those_there_are() -> None:
    assert TIER_OPS.keys() == OPS.keys()
