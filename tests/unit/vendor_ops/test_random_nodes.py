"""Random nodes of the ops of language models, against ONNX Runtime."""

from __future__ import annotations

import random_nodes
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from nodes import node_model, run_imported
from random_nodes import Case

from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

NODES = st.one_of(
    random_nodes.rotary_embeddings(),
    random_nodes.group_query_attentions(),
    random_nodes.multi_head_attentions(),
    random_nodes.attentions(),
    random_nodes.skip_normalizations(),
    random_nodes.products_of_bits(),
)


def check(case: Case) -> None:
    """Compares a node that ONNX Runtime accepts; caches after an entry's tokens are undefined."""
    model = node_model(
        case.op_type, case.inputs, case.outputs, constants=case.constants, **case.attributes
    )
    given = {name: array for name, array in case.inputs.items() if array is not None}
    fed = {name: array for name, array in given.items() if name not in case.constants}
    try:
        want = run_onnxruntime(model, fed)
    except Exception as error:  # of one of many types, of which not all have names in Python
        if "ONNXRuntimeError" not in str(error):
            raise
        reject()
    got = run_imported(model, case.inputs)
    for results in (got, want):
        for name in {"present_k", "present_v"} & results.keys():
            for entry, length in zip(results[name], case.lengths, strict=False):
                entry[:, length:] = 0
    assert_agrees(got, want, 1e-4)


@settings(max_examples=60)
@given(NODES)
def test_as_onnxruntime(case: Case) -> None:
    check(case)
