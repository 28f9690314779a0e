"""Registered functions: each accepts the inputs and attributes of its op's schemas."""

from __future__ import annotations

import inspect
from itertools import pairwise

import onnx
import pytest
from onnx.defs import OpSchema

from byoc_mlir.frontend import import_model
from byoc_mlir.frontend.attributes import UNREAD
from byoc_mlir.frontend.registry import all_ops, find_op

assert import_model  # it registers the functions

SCHEMAS = [
    schema
    for schema in onnx.defs.get_all_schemas_with_history()
    if schema.domain == ""
    and not schema.deprecated
    and find_op("", schema.name, schema.since_version)
]
OLDEST = 1


def _parameters(schema: OpSchema) -> dict[str, inspect.Parameter]:
    op = find_op("", schema.name, schema.since_version)
    assert op is not None
    return dict(op.signature.parameters)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda s: f"{s.name}-{s.since_version}")
def test_attributes(schema: OpSchema) -> None:
    missing = set(schema.attributes) - set(_parameters(schema)) - {UNREAD}
    assert not missing, f"{schema.name} {schema.since_version} may have {sorted(missing)}"


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda s: f"{s.name}-{s.since_version}")
def test_inputs(schema: OpSchema) -> None:
    parameters = list(_parameters(schema).values())[1:]
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return
    positional = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert len(positional) >= schema.max_input
    inputs = [p for p in positional if p.name not in schema.attributes]
    required = [p for p in inputs if p.default is inspect.Parameter.empty]
    assert len(required) <= schema.min_input or any(
        "None" in str(parameter.annotation) for parameter in required
    )


def test_every_function_is_for_a_version_that_exists() -> None:
    versions: dict[str, list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions.setdefault(schema.name, []).append(schema.since_version)
    for op in all_ops():
        if op.domain == "" and op.op_type != "SimplifiedLayerNormalization":  # ONNX Runtime's
            assert op.op_type in versions
            assert op.since == OLDEST or op.since in versions[op.op_type]


def test_newer_functions_come_first() -> None:
    for older, newer in pairwise(all_ops()):
        if (older.domain, older.op_type) == (newer.domain, newer.op_type):
            assert older.since < newer.since
            assert find_op(newer.domain, newer.op_type, newer.since) is newer
            assert find_op(newer.domain, newer.op_type, newer.since - 1) is older
