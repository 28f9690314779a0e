"""Ops that may be left to ONNX's evaluator: it agrees with ONNX Runtime in every version."""

from __future__ import annotations

import locale
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from proven_cases import CASES, graphs, versions

from byoc_mlir.dialects.relay.evaluate.onnx import evaluator_of
from byoc_mlir.dialects.relay.evaluate.proven import PROVEN, unproven
from byoc_mlir.frontend.schema import op_schema
from byoc_mlir.testing.reference import run_onnxruntime


def _check(model: ModelProto, feeds: Mapping[str, Any]) -> None:
    wanted = run_onnxruntime(model, feeds).values()
    found: Any = evaluator_of(model).run(None, dict(feeds))
    for one, other in zip(found, wanted, strict=True):
        _equal(one, other)


def _equal(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert isinstance(found, list)
        for pair in zip(found, wanted, strict=True):
            _equal(*pair)
        return
    found = np.asarray(found)
    assert found.shape == np.shape(wanted)
    if wanted.dtype == object:
        assert found.tolist() == wanted.tolist()
        return
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, strict=True)


def _fits(node: NodeProto, opset: int) -> bool:
    """True if the opset has the form of a case."""
    schema = op_schema(node.domain, node.op_type, opset)
    assert schema is not None
    names = {attribute.name for attribute in node.attribute}
    required = {item.name for item in schema.attributes.values() if item.required}
    count = len(node.input)
    return required <= names <= schema.attributes.keys() and (
        schema.min_input <= count <= schema.max_input
    )


@pytest.mark.parametrize(("domain", "op_type"), PROVEN)
def test_a_form_is_computed_as_by_onnxruntime(domain: str, op_type: str) -> None:
    for opset in versions(domain, op_type, PROVEN[domain, op_type].since):
        ran = 0
        for case in CASES:
            if (case.domain, case.op_type) != (domain, op_type):
                continue
            node = helper.make_node(
                op_type, ["i"] * len(case.inputs), ["o"], domain=domain, **case.attributes
            )
            if _fits(node, opset) and unproven(node, opset) is None:
                _check(*case.model(opset))
                ran += 1
        if not domain:
            for ops, model, feeds in graphs(opset):
                if op_type in ops:
                    _check(model, feeds)
                    ran += 1
        assert ran, f"no case for opset {opset}"
    assert versions(domain, op_type, PROVEN[domain, op_type].since)


def _node(op_type: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, ["x"], ["y"], **attributes)


@pytest.mark.parametrize(
    ("node", "opset", "reason"),
    [
        (_node("Loop"), 21, "not known to be right"),
        (_node("Equal"), 13, "not known to be right"),
        (_node("Concat", overload="a"), 21, "not known to be right"),
        (_node("Cast", to=TensorProto.BOOL), 21, "accepted are FLOAT, DOUBLE"),
        (_node("StringNormalizer", locale="tr_TR.UTF-8"), 10, "locale is 'tr_TR.UTF-8'"),
        (_node("Unique", axis=0), 11, "with an axis"),
        (_node("LabelEncoder", domain="ai.onnx.ml", keys_floats=[np.nan]), 4, "NaN"),
    ],
)
def test_other_forms_are_refused(node: NodeProto, opset: int, reason: str) -> None:
    assert reason in (unproven(node, opset) or "")


def test_the_locale_of_the_process_stays() -> None:
    (case, *_) = (case for case in CASES if case.op_type == "StringNormalizer")
    model, feeds = case.model(10)
    attributes = {item.name: item for item in model.graph.node[0].attribute}
    attributes["locale"].s = b"fr_FR"
    before = locale.setlocale(locale.LC_ALL)
    evaluator_of(model).run(None, dict(feeds))
    assert locale.setlocale(locale.LC_ALL) == before
