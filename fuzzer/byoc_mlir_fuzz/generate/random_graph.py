"""Random models: cases of the fuzzer from a seed and a number."""

from __future__ import annotations

from functools import cache
from random import Random

import onnx
from onnx import helper

from byoc_mlir.frontend import import_model
from byoc_mlir.frontend.files.check import MAX_OPSET
from byoc_mlir.frontend.known_ops import has_standard_function
from byoc_mlir.frontend.registry import all_ops
from byoc_mlir_fuzz.generate import (
    classical,
    control,
    elementwise,
    image,
    index,
    matrix,
    quantised,
    rearrange,
    recurrent,
    trees,
    vendor,
    vendor_attention,
    window,
)
from byoc_mlir_fuzz.generate.default import from_schema
from byoc_mlir_fuzz.generate.graph import GraphBuilder
from byoc_mlir_fuzz.generate.network import add_block
from byoc_mlir_fuzz.generate.recipes import RECIPES
from byoc_mlir_fuzz.generate.tensor import (
    DOMAINS,
    MICROSOFT,
    ML,
    RejectedError,
    Tensor,
    initializer_of,
    make_model,
)
from byoc_mlir_fuzz.values import Style

assert import_model  # the frontend registers its ops
FAMILIES = (
    *(classical, control, elementwise, image, index, matrix, quantised, rearrange, recurrent),
    *(trees, vendor, vendor_attention, window),
)
"""Modules that register recipes."""

_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview.training")
_OPSETS = (*range(7, 28), *range(11, 24), *range(13, 23))
_ML_VERSIONS = (1, 2, 3, 3, 4, 4, 5)
_STYLES: tuple[Style, ...] = ("plain", "plain", "plain", "integral", "extreme")
_SUMS = (
    *("Reduce", "Pool", "Conv", "MatMul", "Gemm", "Norm", "LRN", "Sum", "Mean", "Cum", "Einsum"),
    *("FT", "Softmax", "Loss", "Attention", "RNN", "LSTM", "GRU", "Sample", "Resize", "Det"),
    *("Roi", "Scatter", "Quantize", "Ada", "Momentum", "Grid", "Upsample", "Col2Im", "Embedding"),
    *("Imputer", "If", "Loop", "Scan", "Tree", "SVM", "Linear"),
)
"""Parts of the names of ops that sum, in an order of their choice."""

_ATTEMPTS = 12


@cache
def importable_ops() -> tuple[tuple[str, str], ...]:
    """Returns domain and name of every op that the importer supports, by a function or a standard
    body.
    """
    functions = {(op.domain, op.op_type) for op in all_ops()}
    schemas = [schema for schema in onnx.defs.get_all_schemas() if schema.domain in _DOMAINS]
    standard = {
        (schema.domain, schema.name)
        for schema in schemas
        if (schema.domain, schema.name) in functions or has_standard_function(schema)
    }
    return tuple(
        sorted(standard | {(domain, name) for domain, name in RECIPES if domain == MICROSOFT})
    )


def random_graph(rng: Random) -> tuple[GraphBuilder, onnx.ModelProto]:
    """Returns a random graph, valid as far as ONNX's shape inference can tell, and its model."""
    while True:
        graph = _grown(rng)
        outputs = _outputs(graph)
        if outputs or graph.maps:
            return graph, _model(graph, outputs)


def model_of(graph: GraphBuilder) -> onnx.ModelProto:
    """Returns the model of a graph; its outputs are the values without users."""
    return _model(graph, _outputs(graph))


def _grown(rng: Random) -> GraphBuilder:
    opset = rng.randint(1, MAX_OPSET) if rng.random() < 0.1 else rng.choice(_OPSETS)
    opset = min(opset, MAX_OPSET)
    style: Style = rng.choice(_STYLES)
    domains = {**DOMAINS, ML: rng.choice(_ML_VERSIONS)}
    graph = GraphBuilder(rng, opset, style, domains=domains)
    if rng.random() < 0.4:
        _add_one(graph)
        return graph
    as_network = rng.random() < 0.5
    for _ in range(rng.choice([2, 3, 4, 5, 6, 8, 12])):
        if as_network and rng.random() < 0.75:
            _add_block(graph)
        else:
            add_node(graph)
    return graph


def _add_one(graph: GraphBuilder) -> None:
    """Adds the only node, which may read the largest values unless it sums them."""
    domain, name = graph.rng.choice(importable_ops())
    if graph.style == "extreme" and not any(word in name for word in _SUMS):
        graph.style = "limits"
    add_node(graph, name, domain)


def _add_block(graph: GraphBuilder) -> None:
    try:
        with graph.attempt():
            add_block(graph)
    except RejectedError:
        return


def add_node(graph: GraphBuilder, op_type: str | None = None, domain: str = "") -> None:
    """Adds a node of a random or the given op; adds none if every attempt is rejected."""
    domain, name = graph.rng.choice(importable_ops()) if op_type is None else (domain, op_type)
    for _ in range(_ATTEMPTS):
        try:
            with graph.attempt():
                if (domain, name) in RECIPES:
                    RECIPES[domain, name](graph, name)
                else:
                    from_schema(graph, name, domain)
                return
        except RejectedError:
            continue


def _outputs(graph: GraphBuilder) -> list[Tensor]:
    """Returns the values without users, and at times a value with users, as outputs."""
    made = {name for node in graph.nodes if node.op_type != "Constant" for name in node.output}
    read = {name for node in graph.nodes for name in node.input}
    values = [value for value in graph.values if value.name in made]
    chosen = [v for v in values if v.name not in read or graph.rng.random() < 0.1]
    if chosen and graph.inputs and graph.rng.random() < 0.02:
        chosen.append(graph.inputs[0].tensor)
    return chosen


def _model(graph: GraphBuilder, outputs: list[Tensor]) -> onnx.ModelProto:
    proto = helper.make_graph(
        graph.nodes,
        "fuzz",
        [entry.tensor.value_info() for entry in graph.inputs],
        [*(output.value_info() for output in outputs), *graph.maps],
        [initializer_of(value) for value in graph.initializers],
    )
    return make_model(proto, graph.opsets)
