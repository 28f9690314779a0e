"""Imported models: names, locations, interface, folded and removed nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx_models import model_of, node
from xdsl.dialects.func import FuncOp

from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.errors import (
    InputValuesNeededError,
    InvalidInputError,
    InvalidModelError,
    LimitExceededError,
    UnsupportedModelError,
)
from byoc_mlir.frontend import ImportedModel, TensorInfo, import_model

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def _main(model: ImportedModel) -> FuncOp:
    functions = [op for op in model.module.walk() if isinstance(op, FuncOp)]
    assert functions[0].sym_name.data == "main"
    return functions[0]


def _ops(model: ImportedModel) -> list[str]:
    return [
        op.name
        for op in model.module.walk()
        if isinstance(op, RelayOp) and not isinstance(op, ConstantOp)
    ]


def _array(name: str, content: object, dtype: type = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.asarray(content, dtype), name)


@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
def test_light_networks(path: Path) -> None:
    model = import_model(path)
    model.module.verify()
    (data,), (answer,) = model.inputs, model.outputs
    assert data.shape == (1, 3, 224, 224)
    assert answer.shape[:2] == (1, 1000)
    located = {name for op in _main(model).walk() for name in node_names(op)}
    assert {each.name for each in model.nodes if each.status == "imported"} <= located


def test_text_does_not_grow_with_the_weights() -> None:
    def text_of(width: int) -> str:
        weights = _array("w", np.random.default_rng(0).random((width, width)))
        bias = _array("b", np.random.default_rng(1).random(width))
        inputs = [("x", TensorProto.FLOAT, (1, width))]
        model = model_of([node("Gemm", "x w b", "y")], inputs, initializers=[weights, bias])
        return str(import_model(model).module)

    assert len(text_of(2048)) <= len(text_of(32)) + 30  # wider numbers in the types


def test_locations_and_unique_names() -> None:
    nodes = [
        node("Relu", "x", "a", name="act"),
        node("Relu", "a", "b"),
        node("Relu", "b", "c", name="act"),
        node("Relu", "c", "y", name="Relu_1"),
    ]
    model = import_model(model_of(nodes))
    names = [each.name for each in model.nodes]
    assert len(set(names)) == 4
    assert names[0] == "act"
    assert names[3] == "Relu_1"
    assert [node_names(op) for op in _main(model).walk() if isinstance(op, RelayOp)] == [
        (name,) for name in names
    ]


def test_folded_and_removed_nodes() -> None:
    nodes = [
        node("Shape", "x", "s", name="shape"),
        node("Slice", "s zero one", "rows", name="slice"),
        node("Concat", "rows minus", "target", name="concat", axis=0),
        node("Reshape", "x target", "r", name="reshape"),
        node("Dropout", "r", "d", name="dropout"),
        node("Identity", "d", "y", name="identity"),
    ]
    integers = {"zero": [0], "one": [1], "minus": [-1]}
    initializers = [_array(name, value, np.int64) for name, value in integers.items()]
    inputs = [("x", TensorProto.FLOAT, (2, 3, 4))]
    model = import_model(model_of(nodes, inputs, initializers=initializers))
    assert [(each.name, each.status) for each in model.nodes] == [
        ("shape", "folded"),
        ("slice", "folded"),
        ("concat", "folded"),
        ("reshape", "imported"),
        ("dropout", "removed"),
        ("identity", "removed"),
    ]
    assert _ops(model) == ["relay.reshape"]
    assert model.outputs == (TensorInfo("y", np.dtype(np.float32), (2, 12)),)


def test_outputs_that_are_inputs_or_constants() -> None:
    nodes = [node("Identity", "x", "y"), node("Constant", "", "c", value_ints=[1, 2])]
    names = ["y", "x", "w", "c"]
    model = import_model(model_of(nodes, outputs=names, initializers=[_array("w", 7)]))
    model.module.verify()
    x = np.ones((2, 3), np.float32)
    y, same, w, c = evaluate(_main(model), [x])
    assert y is same is x
    assert (w.shape, w.item()) == ((), 7.0)
    np.testing.assert_array_equal(c, [1, 2])
    assert [info.name for info in model.outputs] == names


def test_initializers_that_are_inputs_too() -> None:
    inputs = [("x", TensorProto.FLOAT, (2, 3)), ("w", TensorProto.FLOAT, ())]
    model = import_model(model_of([node("Add", "x w", "y")], inputs, initializers=[_array("w", 1)]))
    assert [info.name for info in model.inputs] == ["x"]


def test_names_that_are_not_identifiers() -> None:
    name = 'x"%/é'
    nodes = [node("Relu", name, "0", name='a"b\n%s')]
    model = import_model(model_of(nodes, [(name, TensorProto.FLOAT, (1,))], ["0"]))
    assert model.inputs[0].name == name
    assert model.nodes[0].name == 'a"b\n%s'
    assert "relay.nn.relu %x____ :" in str(model.module)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8])
def test_types_stay_as_they_are(dtype: type) -> None:
    data_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = import_model(model_of([node("Add", "x x", "y")], [("x", data_type, (3,))]))
    x = np.array([1, 2, 100], dtype)
    (y,) = evaluate(_main(model), [x])
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, x + x)


SYMBOLIC = model_of(
    [node("Add", "a b", "y")],
    [("a", TensorProto.FLOAT, ("n", 3)), ("b", TensorProto.FLOAT, ("n", 1))],
)


def test_symbols_are_bound_by_one_input() -> None:
    model = import_model(SYMBOLIC, shapes={"a": (5, 3)})
    assert [info.shape for info in model.inputs] == [(5, 3), (5, 1)]
    assert model.outputs[0].shape == (5, 3)


def test_symbols_that_are_not_bound() -> None:
    with pytest.raises(InvalidInputError, match=r"a: float32\[n, 3\]; b: float32\[n, 1\].*shapes="):
        import_model(SYMBOLIC)


def test_symbols_that_are_bound_twice() -> None:
    with pytest.raises(InvalidInputError, match=r"input b.*dimension 0 is 'n', bound to 5"):
        import_model(SYMBOLIC, shapes={"a": (5, 3), "b": (4, 1)})
    twice = model_of([node("Relu", "x", "y")], [("x", TensorProto.FLOAT, ("n", "n"))])
    with pytest.raises(InvalidInputError, match=r"dimension 1 is 'n', bound to 5 \(a name stands"):
        import_model(twice, shapes={"x": (5, 6)})


@pytest.mark.parametrize("size", ["?", "", "None", "-1", "unk__7", -1])
def test_placeholders_are_no_symbols(size: str | int) -> None:
    symbolic = model_of([node("Relu", "x", "y")], [("x", TensorProto.FLOAT, (1, size, size))])
    model = import_model(symbolic, shapes={"x": (1, 5, 3)})
    assert model.outputs[0].shape == (1, 5, 3)
    with pytest.raises(InvalidInputError, match=r"x: float32\[1, x\[1\], x\[2\]\]"):
        import_model(symbolic)


def test_a_recurrent_layer_of_the_wrong_rank() -> None:
    weights = [_array(name, np.ones((1, 8, 2))) for name in ("w", "r")]
    nodes = [node("LSTM", "x w r", "y", hidden_size=2)]
    model = model_of(nodes, [("x", TensorProto.FLOAT, (4, 1, 1, 2))], initializers=weights)
    with pytest.raises(InvalidModelError, match=r"X must have rank 3, found shape \[4, 1, 1, 2\]"):
        import_model(model)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"a": (5, 4)}, r"dimension 1 is 3, the shape given is \[5, 4\]"),
        ({"a": (5,)}, r"has rank 2, the shape given is \[5\]"),
        ({"q": (5, 3)}, "no input 'q'; its inputs are"),
    ],
)
def test_shapes_that_are_not_the_models(shapes: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        import_model(SYMBOLIC, shapes=shapes)


def test_sparse_initializer() -> None:
    sparse = onnx.helper.make_sparse_tensor(
        onnx.helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0]),
        onnx.helper.make_tensor("i", TensorProto.INT64, [2, 2], [0, 1, 1, 2]),
        [2, 3],
    )
    model = model_of([node("Add", "x w", "y")])
    model.graph.sparse_initializer.append(sparse)
    (y,) = evaluate(_main(import_model(model)), [np.zeros((2, 3), np.float32)])
    np.testing.assert_array_equal(y, [[0, 1, 0], [0, 0, 2]])


VALUES = model_of(
    [node("Reshape", "x shape", "r"), node("Tile", "r repeats", "y")],
    [
        ("x", TensorProto.FLOAT, (2, 3)),
        ("shape", TensorProto.INT64, (2,)),
        ("repeats", TensorProto.INT64, (2,)),
    ],
)


def test_inputs_whose_values_are_needed() -> None:
    with pytest.raises(InputValuesNeededError) as caught:
        import_model(VALUES)
    assert caught.value.inputs == ("shape",)
    values = {"shape": np.array([3, 2])}
    with pytest.raises(InputValuesNeededError) as caught:
        import_model(VALUES, values=values)
    assert caught.value.inputs == ("repeats",)
    values["repeats"] = np.array([1, 2])
    model = import_model(VALUES, values=values)
    assert model.outputs[0].shape == (3, 4)
    assert [info.name for info in model.inputs] == ["x", "shape", "repeats"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (y,) = evaluate(_main(model), [x, values["shape"], values["repeats"]])
    np.testing.assert_array_equal(y, np.tile(x.reshape(3, 2), (1, 2)))


def test_no_value_helps_when_another_node_is_unsupported() -> None:
    nodes = [*VALUES.graph.node, node("Frobnicate", "x", "z")]
    inputs = [("x", TensorProto.FLOAT, (2, 3)), ("shape", TensorProto.INT64, (2,))]
    inputs.append(("repeats", TensorProto.INT64, (2,)))
    with pytest.raises(UnsupportedModelError) as caught:
        import_model(model_of(nodes, inputs))
    assert not isinstance(caught.value, InputValuesNeededError)
    assert [problem.op_type for problem in caught.value.problems] == ["Reshape", "Frobnicate"]


def test_no_value_helps_when_it_is_given() -> None:
    model = model_of([node("RandomNormalLike", "x", "r"), node("Unique", "r", "y")])
    with pytest.raises(InputValuesNeededError):
        import_model(model)
    with pytest.raises(UnsupportedModelError, match="must be a constant") as caught:
        import_model(model, values={"x": np.ones((2, 3), np.float32)})
    assert not isinstance(caught.value, InputValuesNeededError)


def test_function_of_the_model() -> None:
    body = [
        onnx.helper.make_node("LeakyRelu", ["a"], ["t"]),
        onnx.helper.make_node("Add", ["t", "b"], ["c"]),
    ]
    reference = body[0].attribute.add()
    reference.name, reference.type = "alpha", onnx.AttributeProto.FLOAT
    reference.ref_attr_name = "slope"
    opsets = [onnx.helper.make_opsetid("", 20)]
    function = onnx.helper.make_function("own", "F", ["a", "b"], ["c"], body, opsets, ["slope"])
    call = onnx.helper.make_node("F", ["x", "x"], ["y"], "call", domain="own", slope=0.5)
    model = model_of([call])
    model.functions.append(function)
    model.opset_import.append(onnx.helper.make_opsetid("own", 1))
    imported = import_model(model)
    x = np.array([[-2, 0, 2], [-4, 1, 4]], np.float32)
    (y,) = evaluate(_main(imported), [x])
    np.testing.assert_array_equal(y, np.where(x < 0, x / 2, x) + x)
    ops = [op for op in _main(imported).walk() if isinstance(op, RelayOp)]
    assert {node_names(op) for op in ops} == {("call",)}
    assert [(each.name, each.status) for each in imported.nodes] == [("call", "imported")]


def test_operands_that_the_first_opsets_overwrote() -> None:
    nodes = [
        node("Add", "x x", "sum", consumed_inputs=[0, 0]),
        node("LeakyRelu", "sum", "y", alpha=0.5, consumed_inputs=[1]),
    ]
    imported = import_model(model_of(nodes, opset=5))
    x = np.array([[-2, 0, 2], [-4, 1, 4]], np.float32)
    (y,) = evaluate(_main(imported), [x])
    np.testing.assert_array_equal(y, np.where(x < 0, x, 2 * x))


def test_function_bodies_do_not_grow_without_bound() -> None:
    model = model_of([onnx.helper.make_node("F0", ["x"], ["y"], domain="own")])
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("own", 1)]
    model.opset_import.append(opsets[1])
    for level in range(14):
        inner = [
            onnx.helper.make_node(f"F{level + 1}", [f"t{i}"], [f"t{i + 1}"], domain="own")
            for i in range(4)
        ]
        body = [onnx.helper.make_node("Relu", ["a"], ["t0"]), *inner]
        function = onnx.helper.make_function("own", f"F{level}", ["a"], ["t4"], body, opsets)
        model.functions.append(function)
    last = [onnx.helper.make_node("Relu", ["a"], ["b"])]
    model.functions.append(onnx.helper.make_function("own", "F14", ["a"], ["b"], last, opsets))
    with pytest.raises(LimitExceededError, match=r"expanded: 715827881, the limit is 20000"):
        import_model(model)


def _graph(nodes: list[onnx.NodeProto], inputs: str, outputs: str) -> onnx.GraphProto:
    read, written = (
        [onnx.helper.make_empty_tensor_value_info(name) for name in names.split()]
        for names in (inputs, outputs)
    )
    return onnx.helper.make_graph(nodes, "body", read, written)


def test_branches_computed_at_run_time() -> None:
    double = _graph([node("Add", "x x", "t")], "", "t")
    square = _graph([node("Mul", "x x", "s")], "", "s")
    inputs = [("x", TensorProto.FLOAT, (2, 3)), ("c", TensorProto.BOOL, ())]
    branch = node("If", "c", "y", name="branch", then_branch=double, else_branch=square)
    model = import_model(model_of([branch], inputs))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for condition, expected in ((True, x + x), (False, x * x)):
        (y,) = evaluate(_main(model), [x, np.array(condition)])
        np.testing.assert_array_equal(y, expected)


def test_loops_that_end_early() -> None:
    nodes = [node("Add", "s x", "s2"), node("ReduceMax", "s2", "m", keepdims=0)]
    nodes += [node("Less", "m limit", "go")]
    body = _graph(nodes, "i c s", "go s2")
    loop = node("Loop", "count yes x", "y", body=body)
    initializers = [_array("count", 9, np.int64), _array("yes", True, np.bool_)]
    initializers.append(_array("limit", 8.0))
    model = import_model(
        model_of([loop], [("x", TensorProto.FLOAT, (2,))], initializers=initializers)
    )
    for x in ([1.0, 2.0], [0.5, 0.1], [20.0, 1.0]):
        array = np.array(x, np.float32)
        (y,) = evaluate(_main(model), [array])
        expected = 2 * array
        for _ in range(8):
            expected = expected + array if expected.max() < 8 else expected
        np.testing.assert_allclose(y, expected)


def test_sequences() -> None:
    nodes = [
        node("SplitToSequence", "x", "parts", axis=1),
        node("SequenceErase", "parts zero", "rest"),
        node("SequenceInsert", "rest x", "more"),
        node("SequenceLength", "more", "n"),
        node("ConcatFromSequence", "more", "y", axis=1),
    ]
    model = import_model(
        model_of(nodes, outputs=["y", "n"], initializers=[_array("zero", 0, np.int64)])
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y, count = evaluate(_main(model), [x])
    assert count == 3
    np.testing.assert_array_equal(y, np.concatenate([x[:, 1:], x], 1))


def test_sequences_as_outputs() -> None:
    with pytest.raises(
        UnsupportedModelError, match="a sequence or an optional, which the model does not declare"
    ):
        import_model(model_of([node("SequenceConstruct", "x x", "y")]))
