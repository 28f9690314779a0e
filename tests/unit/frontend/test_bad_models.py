"""Invalid models: loading ends in a model or in a typed error with the reason."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx_models import add_of, model_of, node

from byoc_mlir.errors import (
    InvalidInputError,
    InvalidModelError,
    LimitExceededError,
    UnsupportedModelError,
)
from byoc_mlir.frontend import import_model, load_model
from byoc_mlir.limits import Limits, limited


def _weights(shape: tuple[int, ...] = (2, 3)) -> TensorProto:
    return numpy_helper.from_array(np.ones(shape, np.float32), "w")


VALID = add_of(_weights()).SerializeToString()


@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    with pytest.raises(InvalidModelError, match=r"not an ONNX model"):
        load_model(data)


@given(st.integers(0, len(VALID) - 1))
def test_truncated(length: int) -> None:
    with pytest.raises(InvalidModelError):
        import_model(VALID[:length])


@settings(max_examples=300)
@given(st.integers(0, len(VALID) - 1), st.integers(0, 255))
def test_one_byte_changed(position: int, byte: int) -> None:
    data = VALID[:position] + bytes([byte]) + VALID[position + 1 :]
    expected = (InvalidModelError, UnsupportedModelError, InvalidInputError, LimitExceededError)
    with suppress(*expected):
        import_model(data).module.verify()


@pytest.mark.parametrize("element", [TensorProto.COMPLEX64, TensorProto.FLOAT6E2M3])
@pytest.mark.parametrize(("op", "found"), [("Identity", "x"), ("Cast", "Cast_0")])
def test_types_that_no_tensor_has(element: int, op: str, found: str) -> None:
    read = element if op == "Identity" else TensorProto.FLOAT
    attributes: dict[str, Any] = {"to": element} if op == "Cast" else {}
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", read, [2])],
        [helper.make_tensor_value_info("y", element, [2])],
    )
    name = helper.tensor_dtype_to_np_dtype(element)
    with pytest.raises(UnsupportedModelError, match=rf"{found} .*elements of {name} .*float32"):
        import_model(helper.make_model(graph))


def test_missing_file() -> None:
    with pytest.raises(InvalidModelError, match=r"'no_such_model.onnx' cannot be read: No such"):
        load_model("no_such_model.onnx")


def test_newer_ir_version() -> None:
    model = model_of([node("Relu", "x", "y")])
    model.ir_version = onnx.IR_VERSION + 1
    message = f"IR version {onnx.IR_VERSION + 1}, the newest supported is {onnx.IR_VERSION}"
    with pytest.raises(InvalidModelError, match=message):
        load_model(model)


def test_newer_opset() -> None:
    newest = onnx.defs.onnx_opset_version()
    with pytest.raises(InvalidModelError, match=f"opset {newest + 1}, supported are 1 to {newest}"):
        load_model(model_of([node("Relu", "x", "y")], opset=newest + 1))


def test_an_opset_imported_twice() -> None:
    model = model_of([node("Relu", "x", "y")])
    model.opset_import.append(model.opset_import[0])
    load_model(model)
    model.opset_import[-1].version -= 1
    with pytest.raises(InvalidModelError, match="domain '' is imported in several versions"):
        load_model(model)


def test_opset_of_a_domain_missing() -> None:
    model = model_of([helper.make_node("Foo", ["x"], ["y"], "n", domain="com.vendor")])
    with pytest.raises(InvalidModelError, match=r"'n' .*which opset of the domain 'com.vendor'"):
        import_model(model)


def test_cycle() -> None:
    model = model_of([node("Add", "x b", "a", name="first"), node("Relu", "a", "b", name="second")])
    with pytest.raises(InvalidModelError, match=r"cycle: 'first' .* <- 'second' .* <- 'first'"):
        load_model(model)


def test_node_of_itself() -> None:
    with pytest.raises(InvalidModelError, match=r"cycle: 'n'"):
        load_model(model_of([node("Add", "x y", "y", name="n")]))


def test_undefined_name() -> None:
    with pytest.raises(InvalidModelError, match=r"'n' .* reads 'q', which nothing defines"):
        load_model(model_of([node("Relu", "q", "y", name="n")]))


def test_undefined_output() -> None:
    with pytest.raises(InvalidModelError, match=r"output 'z' is defined by nothing"):
        load_model(model_of([node("Relu", "x", "y")], outputs=["z"]))


def test_name_defined_twice() -> None:
    with pytest.raises(InvalidModelError, match=r"'n' .* defines 'y', which is defined already"):
        load_model(model_of([node("Relu", "x", "y"), node("Abs", "x", "y", name="n")]))


def test_input_defined_twice() -> None:
    inputs = [("x", TensorProto.FLOAT, (2, 3))] * 2
    with pytest.raises(InvalidModelError, match=r"input 'x' is defined more than once"):
        load_model(model_of([node("Relu", "x", "y")], inputs=inputs))


def test_initializer_defined_twice() -> None:
    model = add_of(_weights())
    model.graph.initializer.append(_weights())
    with pytest.raises(InvalidModelError, match=r"initializer 'w' is defined more than once"):
        load_model(model)


def test_unsorted_nodes_are_sorted() -> None:
    model = model_of([node("Relu", "a", "y", name="second"), node("Abs", "x", "a", name="first")])
    assert [each.name for each in import_model(model).nodes] == ["first", "second"]


def test_subgraphs_nested_too_deep() -> None:
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node("Relu", "x", "y")], "g", [], outputs)
    for _ in range(17):
        graph = helper.make_graph([node("If", "c", "y", then_branch=graph)], "g", [], outputs)
    inputs = [("x", TensorProto.FLOAT, (2, 3)), ("c", TensorProto.BOOL, ())]
    model = model_of(graph.node, inputs)
    message = r"nested graphs: 17, the limit is 16"
    with limited(Limits(nesting=16)), pytest.raises(LimitExceededError, match=message):
        load_model(model)


@pytest.mark.parametrize("last_first", [False, True])
def test_functions_and_graphs_nested_too_deep(last_first: bool) -> None:
    """Checks functions that call each other in a branch, listed in either order."""
    ids = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]
    output = [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)]
    bodies = [[node("Neg", "a", "b")]]
    for number in range(1, 12):
        call = node(f"F{number - 1}", "a", "b", domain="f")
        branch = helper.make_graph([call], "g", [], output)
        bodies.append([node("If", "c", "b", then_branch=branch, else_branch=branch)])
    functions = [
        helper.make_function("f", f"F{number}", ["a", "c"], ["b"], body, ids)
        for number, body in enumerate(bodies)
    ]
    inputs = [("x", TensorProto.FLOAT, (2, 3)), ("c", TensorProto.BOOL, ())]
    model = model_of([node("F11", "x c", "y", domain="f")], inputs)
    model.opset_import.append(ids[1])
    model.functions.extend(functions[::-1] if last_first else functions)
    message = r"nested functions and graphs: \d+, the limit is 16"
    with limited(Limits(nesting=16)), pytest.raises(LimitExceededError, match=message):
        load_model(model)


def test_functions_that_call_each_other_twice() -> None:
    """Checks that they are refused before they are expanded to 2**31 nodes."""
    model = model_of([node("F0", "x", "y", domain="f")])
    ids = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]
    model.opset_import.append(ids[1])
    for number in range(30):
        op, domain = (f"F{number + 1}", "f") if number < 29 else ("Neg", "")
        calls = [node(op, "a", "m", domain=domain), node(op, "m", "b", domain=domain)]
        model.functions.append(helper.make_function("f", f"F{number}", ["a"], ["b"], calls, ids))
    with pytest.raises(LimitExceededError, match=r"nodes of functions, expanded: 2147483646"):
        load_model(model)


def test_undefined_name_in_a_subgraph() -> None:
    body = helper.make_graph(
        [node("Relu", "q", "z", name="inner")],
        "b",
        [],
        [helper.make_tensor_value_info("z", 1, None)],
    )
    inputs = [("x", TensorProto.FLOAT, (2, 3)), ("c", TensorProto.BOOL, ())]
    model = model_of([node("If", "c", "y", then_branch=body, else_branch=body)], inputs)
    with pytest.raises(InvalidModelError, match=r"reads 'q'"):
        load_model(model)


def test_recursive_functions() -> None:
    model = model_of([helper.make_node("F", ["x"], ["y"], domain="d")])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("d", 1)]
    for name, other in (("F", "G"), ("G", "F")):
        call = helper.make_node(other, ["a"], ["b"], domain="d")
        model.functions.append(helper.make_function("d", name, ["a"], ["b"], [call], opsets))
    with pytest.raises(InvalidModelError, match=r"without end: F -> G -> F"):
        load_model(model)


def test_unknown_attribute() -> None:
    with pytest.raises(InvalidModelError, match=r"'n' .*no attribute 'slope', accepted are alpha"):
        import_model(model_of([node("LeakyRelu", "x", "y", name="n", slope=0.1)]))


def test_attribute_of_wrong_kind() -> None:
    with pytest.raises(InvalidModelError, match=r"attribute 'axis' is STRING, accepted is .*INT"):
        import_model(model_of([node("Softmax", "x", "y", axis="last")]))


def test_attribute_given_twice() -> None:
    model = model_of([node("Softmax", "x", "y", axis=0)])
    model.graph.node[0].attribute.append(model.graph.node[0].attribute[0])
    with pytest.raises(InvalidModelError, match=r"attribute 'axis' is given more than once"):
        import_model(model)


def test_too_few_inputs() -> None:
    with pytest.raises(InvalidModelError, match=r"1 inputs, accepted are 2"):
        import_model(model_of([node("Add", "x", "y")]))


def test_shapes_that_do_not_fit() -> None:
    model = model_of([node("Add", "x w", "y", name="n")], initializers=[_weights((4,))])
    with pytest.raises(InvalidModelError, match=r"'n' \(Add\): shapes \[2, 3\], \[4\] do not"):
        import_model(model)


def test_payload_shorter_than_the_shape() -> None:
    tensor = _weights()
    tensor.raw_data = tensor.raw_data[:-1]
    with pytest.raises(InvalidModelError, match=r"'w': raw_data holds 23 bytes.* needs 24"):
        load_model(add_of(tensor))


def test_payload_of_a_constant_attribute() -> None:
    tensor = _weights()
    tensor.dims[0] = 1 << 40
    with pytest.raises(InvalidModelError, match=r"attribute 'value': raw_data holds 24 bytes"):
        load_model(model_of([node("Constant", "", "y", value=tensor)], inputs=[]))


def test_negative_dimension() -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[-1, 2])
    with pytest.raises(InvalidModelError, match=r"shape is \[-1, 2\]"):
        load_model(add_of(tensor))


def test_dimensions_that_overflow() -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1 << 33, 1 << 33])
    with pytest.raises(InvalidModelError, match=f"needs {1 << 66}"):
        load_model(add_of(tensor))


def test_data_given_twice() -> None:
    tensor = _weights()
    tensor.float_data.extend([1.0] * 6)
    with pytest.raises(InvalidModelError, match=r"given twice, as float_data and raw_data"):
        load_model(add_of(tensor))


def test_data_in_the_wrong_field() -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1], int64_data=[1])
    with pytest.raises(InvalidModelError, match=r"is in int64_data, .* belongs in float_data"):
        load_model(add_of(tensor))


def test_unknown_element_type() -> None:
    with pytest.raises(InvalidModelError, match=r"no tensor element type 99"):
        load_model(add_of(TensorProto(name="w", data_type=99)))


@pytest.mark.parametrize(
    ("data_type", "count", "size"),
    [(TensorProto.INT4, 3, 2), (TensorProto.UINT2, 5, 2), (TensorProto.COMPLEX64, 2, 16)],
)
def test_packed_payloads(data_type: int, count: int, size: int) -> None:
    tensor = TensorProto(name="w", data_type=data_type, dims=[count], raw_data=bytes(size))
    load_model(add_of(tensor))
    tensor.raw_data = bytes(size + 1)
    with pytest.raises(InvalidModelError, match=f"holds {size + 1} bytes.* needs {size}"):
        load_model(add_of(tensor))


def test_sparse_index_outside() -> None:
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0]),
        helper.make_tensor("i", TensorProto.INT64, [1], [6]),
        [2, 3],
    )
    model = model_of([node("Add", "x w", "y")])
    model.graph.sparse_initializer.append(sparse)
    with pytest.raises(InvalidModelError, match=r"an index is outside"):
        import_model(model)


def test_sparse_too_large() -> None:
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0]),
        helper.make_tensor("i", TensorProto.INT64, [1], [6]),
        [1 << 20, 1 << 20],
    )
    model = model_of([node("Add", "x w", "y")])
    model.graph.sparse_initializer.append(sparse)
    with pytest.raises(LimitExceededError, match=r"sparse initializer 'w'.*constant_bytes"):
        load_model(model)


def test_all_unsupported_nodes_are_listed() -> None:
    vendor = helper.make_node("Gadget", ["y"], ["w"], "vendor", domain="com.vendor")
    model = model_of(
        [node("Frobnicate", "x", "y", name="one"), vendor, node("Blub", "w", "z", name="two")],
        outputs=["z"],
    )
    model.opset_import.append(helper.make_opsetid("com.vendor", 1))
    with pytest.raises(UnsupportedModelError) as caught:
        import_model(model)
    found = [(each.node, each.op_type, each.domain) for each in caught.value.problems]
    assert found == [
        ("one", "Frobnicate", ""),
        ("vendor", "Gadget", "com.vendor"),
        ("two", "Blub", ""),
    ]


@pytest.mark.parametrize(("attribute", "value"), [("strides", [0, 1]), ("dilations", [1, 0])])
def test_window_attributes(attribute: str, value: list[int]) -> None:
    inputs = [("x", TensorProto.FLOAT, (1, 1, 4, 4)), ("w", TensorProto.FLOAT, (1, 1, 3, 3))]
    with pytest.raises((InvalidModelError, UnsupportedModelError), match=r"at least 1"):
        import_model(model_of([node("Conv", "x w", "y", **{attribute: value})], inputs))


def test_constants_are_not_folded_without_bound() -> None:
    shape = numpy_helper.from_array(np.array([1 << 20, 1 << 20, 1 << 10], np.int64), "s")
    model = model_of([node("ConstantOfShape", "s", "y", name="n")], inputs=[], initializers=[shape])
    with pytest.raises(LimitExceededError, match=r"'n'.*ConstantOfShape.*constant_bytes"):
        import_model(model)


def test_a_map_over_a_sequence_whose_body_takes_nothing() -> None:
    body = helper.make_graph([], "body", [], [])
    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["s"]),
        helper.make_node("SequenceMap", ["s"], ["t"], name="mapped", body=body),
        helper.make_node("SequenceLength", ["t"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [])
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=opsets)
    with pytest.raises(InvalidModelError, match=r"'mapped' \(SequenceMap\): Expected 1 or more"):
        import_model(model)
