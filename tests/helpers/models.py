"""Small ONNX models: from ONNX's text, from nodes, and of one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper, parser

from byoc_mlir.tensors import Array

Described: TypeAlias = Array | ValueInfoProto | Sequence[int | str | None]
"""Description of a value: an array of its type, or the sizes of an `f32` tensor."""

MICROSOFT, ML = "com.microsoft", "ai.onnx.ml"
_DOMAINS = {MICROSOFT: 1, ML: 3}


def parsed(
    signature: str,
    body: str,
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    **domains: int,
) -> ModelProto:
    """Parses a model from ONNX's text, such as `(float[4] x) => (float[n] y)`, and its nodes."""
    used = [domain for domain in _DOMAINS if f"{domain}." in body]
    opsets = {"": opset, **_versions(used, domains)}
    imports = ", ".join(f'"{domain}": {version}' for domain, version in opsets.items())
    model = parser.parse_model(
        f"<ir_version: 10, opset_import: [{imports}]>\nnet {signature} {{ {body} }}"
    )
    model.graph.initializer.extend(_initializers(constants))
    return model


def node(op_type: str, inputs: str, outputs: str = "", **attributes: Any) -> NodeProto:
    """Returns a node, from names separated by spaces; `_` omits an input.

    Without names its output is named by `model_of`: `y` if the node is the last one.
    """
    names = ["" if name == "_" else name for name in inputs.split()]
    return helper.make_node(op_type, names, outputs.split(), **attributes)


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Described],
    constants: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | Mapping[str, Described] = (),
    *,
    opset: int = 20,
    **domains: int,
) -> ModelProto:
    """Returns the nodes as a model.

    Args:
        nodes: its nodes, in order.
        inputs: its inputs, without the constants.
        constants: arrays by name.
        outputs: names, or descriptions by name; by default all outputs of the last node.
        opset: version of ONNX's own ops; `domains` has those of others.
    """
    for number, each in enumerate(nodes):
        if not each.output:
            each.output.append("y" if each is nodes[-1] else f"{each.op_type}_{number}")
    names = outputs or [name for name in nodes[-1].output if name]
    described = names if isinstance(names, Mapping) else {}
    graph = helper.make_graph(
        list(nodes),
        "g",
        [info(name, each) for name, each in inputs.items()],
        [
            info(name, described[name])
            if name in described
            else helper.make_empty_tensor_value_info(name)
            for name in names
        ],
        _initializers(constants),
    )
    versions = {"": opset, **_versions([each.domain for each in nodes], domains)}
    opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _versions(used: Sequence[str], given: Mapping[str, int]) -> dict[str, int]:
    """Returns the versions of the domains that are used or given."""
    return {name: version for name, version in _DOMAINS.items() if name in used} | {**given}


def info(name: str, described: Described) -> ValueInfoProto:
    """Returns the description of a value under a name."""
    if isinstance(described, ValueInfoProto):
        return described
    if isinstance(described, np.ndarray):
        kind = helper.np_dtype_to_tensor_dtype(described.dtype)
        return helper.make_tensor_value_info(name, kind, described.shape)
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, described)


def _initializers(constants: Mapping[str, Any] | None) -> list[onnx.TensorProto]:
    arrays = {name: np.asarray(array) for name, array in (constants or {}).items()}
    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def node_model(
    op_type: str,
    operands: Sequence[Array | None],
    constants: Sequence[Array | None] = (),
    *,
    opset: int = 17,
    outputs: int = 1,
    **attributes: Any,
) -> tuple[ModelProto, dict[str, Array]]:
    """Returns a model of one node, `y0, … = op(x0, …, c0, …)`, and its inputs; operands that are
    `None` are omitted.
    """
    feeds = {f"x{place}": each for place, each in enumerate(operands) if each is not None}
    known = {f"c{place}": each for place, each in enumerate(constants) if each is not None}
    names = [f"x{place}" for place in range(len(operands))]
    names += [f"c{place}" for place in range(len(constants))]
    read = [name if name in feeds or name in known else "" for name in names]
    made = helper.make_node(op_type, read, [f"y{n}" for n in range(outputs)], **attributes)
    return onnx.shape_inference.infer_shapes(model_of([made], feeds, known, opset=opset)), feeds
