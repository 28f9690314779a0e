"""LSTM, GRU, RNN."""

from __future__ import annotations

import numpy as np

from byoc_mlir.testing.samples.onnx_nodes.choices import maybe
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import Tensor

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@recipe("LSTM", "GRU", "RNN")
def recurrent(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    length, batch, width = rng.randint(1, 5), rng.randint(1, 3), rng.randint(1, 6)
    hidden, gates = rng.choice([1, 2, 3, 8]), _GATES[op_type]
    direction = rng.choice(["forward", "forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    layout = rng.randint(0, 1) if graph.opset >= 14 and rng.random() < 0.2 else None
    x = graph.tensor(
        graph.dtypes(op_type), (batch, length, width) if layout else (length, batch, width)
    )
    state = (batch, ways, hidden) if layout else (ways, batch, hidden)
    lengths = np.array([rng.randint(1, length) for _ in range(batch)], np.int32)
    operands: list[Tensor | None] = [
        x,
        graph.tensor(x.dtype, (ways, gates * hidden, width)),
        graph.tensor(x.dtype, (ways, gates * hidden, hidden)),
        _optional(graph, x, (ways, 2 * gates * hidden)),
        graph.parameter(lengths, 0.5) if rng.random() < 0.2 else None,
        _optional(graph, x, state),
    ]
    if op_type == "LSTM":
        operands += [_optional(graph, x, state), _optional(graph, x, (ways, 3 * hidden))]
    while operands[-1] is None:
        operands.pop()
    graph.emit(
        op_type,
        operands,
        rng.randint(1, 3 if op_type == "LSTM" else 2),
        hidden_size=hidden,
        direction=direction,
        layout=layout,
        clip=maybe(graph, 1.5, 0.1),
        linear_before_reset=maybe(graph, 1, 0.5),
        output_sequence=1,
    )


def _optional(graph: RandomGraph, like: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    return graph.tensor(like.dtype, shape) if graph.rng.random() < 0.5 else None
