"""Random graphs of known ops: the interpreter's outputs equal ONNX Runtime's, at several sizes."""

from __future__ import annotations

from random import Random

from agreement import decision
from byoc_mlir_fuzz.generate.graph import GraphBuilder
from byoc_mlir_fuzz.generate.random_graph import add_node, model_of
from byoc_mlir_fuzz.symbolic import with_symbols
from hypothesis import event, given, settings
from hypothesis import strategies as st

from byoc_mlir.interpreter.tier_ops import TIER_OPS

WINDOWS = frozenset(
    (
        *("Conv", "ConvTranspose", "MaxPool", "AveragePool"),
        *("GlobalAveragePool", "GlobalMaxPool"),
    )
)
NAMES = sorted(TIER_OPS.keys() - WINDOWS)


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=150, deadline=None)
def test_answers_agree(seed: int, symbolic: bool) -> None:
    rng = Random(seed)
    graph = GraphBuilder(rng, rng.randint(7, 28), rng.choice(["plain", "plain", "integral"]))
    for _ in range(rng.randint(2, 7)):
        add_node(graph, rng.choice(NAMES))
    model = model_of(graph)
    feeds = ({entry.tensor.name: entry.value for entry in graph.inputs},)
    if symbolic:
        model, feeds = with_symbols(rng, model, graph.inputs)
    for each in feeds if model.graph.output else ():
        found = decision(model, each)
        event(str(found))
        assert isinstance(found, str), f"{[node.op_type for node in model.graph.node]}: {found}"
