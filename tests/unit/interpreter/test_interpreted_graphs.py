"""Random graphs of known ops: the interpreter's outputs equal ONNX Runtime's, at several sizes."""

from __future__ import annotations

from random import Random

from agreement import decision
from hypothesis import event, given, settings
from hypothesis import strategies as st

from byoc_mlir.interpreter.tier_ops import TIER_OPS
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import add_node
from byoc_mlir.testing.samples.onnx_nodes.symbolic import with_symbols

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
    graph = RandomGraph(rng, rng.randint(7, 28), rng.choice(["plain", "plain", "integral"]))
    for _ in range(rng.randint(2, 7)):
        add_node(graph, rng.choice(NAMES))
    model = graph.model()
    feeds = (graph.feeds,)
    if symbolic:
        model, feeds = with_symbols(graph, model)
    for each in feeds if model.graph.output else ():
        found = decision(model, each)
        event(str(found))
        assert isinstance(found, str), f"{[node.op_type for node in model.graph.node]}: {found}"
