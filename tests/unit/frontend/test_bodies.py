"""Importers that add ops to another block than the body whose values they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import pytest
from helpers.models import model_of, node
from registered import hide_own_ops

from byoc_mlir.dialects.relay import elementwise
from byoc_mlir.errors import InternalError
from byoc_mlir.frontend import NodeContext, Value, import_model, register_op
from byoc_mlir.frontend.ops.counted import for_loop, iteration_number

_DOMAIN = "com.example"
_READ_OUTSIDE = "node 'node'.*a value of a body is read outside of it"


@pytest.fixture(autouse=True)
def nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_own_ops(monkeypatch)


def model() -> onnx.ModelProto:
    nodes = [node("Op", "x", name="node", domain=_DOMAIN)]
    versions: dict[str, Any] = {_DOMAIN: 1}
    return model_of(nodes, {"x": [3]}, outputs={"y": [3]}, opset=17, **versions)


def negated(context: NodeContext, value: Value) -> Value:
    return context.emit(elementwise.NegativeOp, value)


def test_an_op_in_its_body_is_imported() -> None:
    @register_op(_DOMAIN, "Op")
    def inside(context: NodeContext, data: Value) -> Sequence[Value]:
        def build(inner: NodeContext, _: str, formals: Sequence[Value]) -> Sequence[Value]:
            return [negated(inner, formals[1])]

        body = context.body("body", [iteration_number(context), data], build)
        return for_loop(context, body, [data], 5)

    assert inside
    assert "relay.for" in str(import_model(model()).module)


def test_an_op_around_the_body_whose_values_it_reads_is_a_defect() -> None:
    @register_op(_DOMAIN, "Op")
    def outside(context: NodeContext, data: Value) -> Sequence[Value]:
        def build(inner: NodeContext, _: str, formals: Sequence[Value]) -> Sequence[Value]:
            return [inner.emit(elementwise.ExpOp, negated(context, formals[1]))]

        body = context.body("body", [iteration_number(context), data], build)
        return for_loop(context, body, [data], 5)

    assert outside
    with pytest.raises(InternalError, match=_READ_OUTSIDE):
        import_model(model())


def test_an_op_of_another_branch_is_a_defect() -> None:
    @register_op(_DOMAIN, "Op")
    def crossed(context: NodeContext, data: Value) -> Sequence[Value]:
        made: list[Value] = []

        def build(inner: NodeContext, _: str, formals: Sequence[Value]) -> Sequence[Value]:
            made.append(negated(inner, made[0] if made else data))
            return made[-1:]

        context.body("then_branch", [], build)
        context.body("else_branch", [], build)
        return [data]

    assert crossed
    with pytest.raises(InternalError, match=_READ_OUTSIDE):
        import_model(model())


def test_a_value_of_a_body_is_no_output() -> None:
    @register_op(_DOMAIN, "Op")
    def returned(context: NodeContext, data: Value) -> Sequence[Value]:
        made: list[Value] = []

        def build(inner: NodeContext, _: str, formals: Sequence[Value]) -> Sequence[Value]:
            made.append(negated(inner, formals[1]))
            return made

        context.body("body", [iteration_number(context), data], build)
        return made

    assert returned
    with pytest.raises(InternalError, match=_READ_OUTSIDE):
        import_model(model())
