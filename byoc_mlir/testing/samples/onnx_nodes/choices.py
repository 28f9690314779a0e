"""Random choices of axes, and of values that a node may lack."""

from __future__ import annotations

from typing import Any

from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.values import Style


def some_axes(graph: RandomGraph, rank: int, least: int = 0) -> list[int]:
    """Returns axes of a tensor in any order, some counted from the end."""
    count = graph.rng.randint(min(least, rank), rank)
    return [signed(graph, axis, rank) for axis in graph.rng.sample(range(rank), count)]


def some_axis(graph: RandomGraph, rank: int) -> int:
    """Returns one axis, at times counted from the end."""
    return signed(graph, graph.rng.randrange(max(rank, 1)), rank)


def signed(graph: RandomGraph, axis: int, rank: int) -> int:
    return axis - rank if rank and graph.rng.random() < 0.3 else axis


def maybe(graph: RandomGraph, value: Any, probability: float = 0.5) -> Any:
    """Returns the value, or `None` to omit it."""
    return value if graph.rng.random() < probability else None


def finite(graph: RandomGraph) -> Style | None:
    """Returns the style for factors: finite values, since the oracles multiply infinities by zero
    or by padding.
    """
    return "plain" if graph.style in ("extreme", "limits") else None
