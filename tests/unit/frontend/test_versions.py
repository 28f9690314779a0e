"""Ops that an opset does not have, types that it does not allow, and overloads of functions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx_models import model_of, node

import byoc_mlir
from byoc_mlir.errors import InvalidModelError, UnsupportedModelError
from byoc_mlir.frontend.files.check import MAX_OPSET, check_model
from byoc_mlir.frontend.known_ops import check_nodes

SCHEMAS = onnx.defs.get_all_schemas_with_history()
OPSETS = {
    "": MAX_OPSET,
    "ai.onnx.ml": onnx.defs.get_schema("TreeEnsemble", "ai.onnx.ml").since_version,
}
NAMES = {(schema.domain, schema.name) for schema in SCHEMAS if schema.domain in OPSETS}
FIRST = {
    key: min(s.since_version for s in SCHEMAS if (s.domain, s.name) == key and not s.deprecated)
    for key in NAMES
}
LAST = {
    (s.domain, s.name): s.since_version - 1
    for s in SCHEMAS
    if s.deprecated and s.name != "GroupNormalization"  # whose version 18 was replaced by 21
}
X = np.array([-2, 3], np.float32)


def _refused(domain: str, name: str, opset: int) -> str:
    model = model_of([helper.make_node(name, ["x"], ["y"], "here", domain=domain)])
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid(domain, opset))
    with pytest.raises(UnsupportedModelError, match=rf"here \(.*{name}.*opset {opset}") as caught:
        check_nodes(model)
    return str(caught.value)


def test_ops_that_the_opset_does_not_have_yet() -> None:
    for (domain, name), since in FIRST.items():
        if since > 1:
            last = LAST.get((domain, name))
            text = f"opsets from {since} on do" if last is None else f"opsets {since} to {last} do"
            assert text in _refused(domain, name, since - 1)


def test_ops_that_the_opset_has_no_more() -> None:
    for (domain, name), last in LAST.items():
        text = f"opsets {FIRST[domain, name]} to {last} do"
        assert text in _refused(domain, name, OPSETS[domain])


@pytest.mark.parametrize(
    ("bad", "opset"),
    [
        (node("Cast", "x", "y", to=TensorProto.FLOAT8E4M3FN), 13),
        (node("EyeLike", "x", "y", dtype=TensorProto.BFLOAT16), 13),
        (node("BitCast", "x", "y", to=TensorProto.INT16), 26),
    ],
)
def test_results_have_a_type_that_the_op_may_have(bad: NodeProto, opset: int) -> None:
    with pytest.raises(InvalidModelError, match=bad.op_type):
        byoc_mlir.compile(model_of([bad], opset=opset), ())


def test_reshape_of_nothing_infers_one_size() -> None:
    shape = numpy_helper.from_array(np.array([-1, -1]), "shape")
    x = ("x", TensorProto.FLOAT, (0, 3))
    model = model_of([node("Reshape", "x shape", "y", name="here")], [x], initializers=[shape])
    with pytest.raises(InvalidModelError, match=r"here.*\[-1, -1\]"):
        byoc_mlir.compile(model, ())


def _function(op_type: str, overload: str) -> FunctionProto:
    imports = [helper.make_opsetid("ai.onnx", 18)]  # another spelling of the default domain
    nodes = [node(op_type, "x", "y")]
    return helper.make_function("own", "f", ["x"], ["y"], nodes, imports, overload=overload)


def _calls(*overloads: str, functions: tuple[FunctionProto, ...]) -> ModelProto:
    names = ["x", *map(str, range(len(overloads) - 1)), "y"]
    nodes = [
        helper.make_node("f", [names[at]], [names[at + 1]], domain="own", overload=overload)
        for at, overload in enumerate(overloads)
    ]
    model = model_of(nodes, [("x", TensorProto.FLOAT, (2,))])
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.functions.extend(functions)
    return model


def test_functions_are_told_apart_by_their_overload() -> None:
    functions = (_function("Neg", "neg"), _function("Abs", "abs"), _function("Exp", ""))
    for overloads, wanted in (
        (("abs", "neg"), -abs(X)),
        (("neg", "abs"), abs(X)),
        (("neg", ""), np.exp(-X)),
    ):
        executable = byoc_mlir.compile(_calls(*overloads, functions=functions), ())
        np.testing.assert_allclose(executable.run([X])["y"], wanted, rtol=1e-6)


def test_overloads_that_no_function_has() -> None:
    model = _calls("other", functions=(_function("Neg", ""),))
    with pytest.raises(UnsupportedModelError, match="no function 'f' with the overload 'other'"):
        byoc_mlir.compile(model, ())
    nodes = [helper.make_node("Relu", ["x"], ["y"], overload="other")]
    with pytest.raises(UnsupportedModelError, match="no function 'Relu' with the overload"):
        byoc_mlir.compile(model_of(nodes), ())


def test_functions_that_are_the_same_to_a_call() -> None:
    with pytest.raises(InvalidModelError, match="two functions 'f' and the overload 'a'"):
        check_model(_calls("a", functions=(_function("Neg", "a"), _function("Abs", "a"))))


@pytest.mark.parametrize("opset", [5, 8])
def test_constants_of_integers_in_opsets_whose_schema_has_floats_alone(opset: int) -> None:
    """Checks how exporters of these opsets wrote the shapes of Reshape."""
    shape = numpy_helper.from_array(np.array([3, 2]))
    nodes = [node("Constant", "", "s", value=shape), node("Reshape", "x s", "y")]
    with byoc_mlir.compile(model_of(nodes, opset=opset), (), cache=False) as executable:
        assert executable.run({"x": np.ones((2, 3), np.float32)})["y"].shape == (3, 2)
