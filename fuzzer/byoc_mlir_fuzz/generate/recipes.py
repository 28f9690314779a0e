"""Registry of the functions that generate nodes of an op; other ops are generated from their
schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from byoc_mlir_fuzz.generate.graph import GraphBuilder
from byoc_mlir_fuzz.values import Style

Recipe: TypeAlias = Callable[[GraphBuilder, str], None]
"""Function that adds a node of the named op, and the values it needs; raises `RejectedError` if
that fails.
"""

RECIPES: dict[tuple[str, str], Recipe] = {}
"""Recipes by domain and op."""


def recipe(*op_types: str, domain: str = "") -> Callable[[Recipe], Recipe]:
    """Registers a function for some ops of a domain."""

    def register(function: Recipe) -> Recipe:
        for op_type in op_types:
            assert (domain, op_type) not in RECIPES, f"{op_type} has two recipes"
            RECIPES[domain, op_type] = function
        return function

    return register


def some_axes(graph: GraphBuilder, rank: int, least: int = 0) -> list[int]:
    """Returns axes of a tensor in any order, some counted from the end."""
    count = graph.rng.randint(min(least, rank), rank)
    return [signed(graph, axis, rank) for axis in graph.rng.sample(range(rank), count)]


def some_axis(graph: GraphBuilder, rank: int) -> int:
    """Returns one axis, at times counted from the end."""
    return signed(graph, graph.rng.randrange(max(rank, 1)), rank)


def signed(graph: GraphBuilder, axis: int, rank: int) -> int:
    return axis - rank if rank and graph.rng.random() < 0.3 else axis


def maybe(graph: GraphBuilder, value: Any, probability: float = 0.5) -> Any:
    """Returns the value, or `None` to omit it."""
    return value if graph.rng.random() < probability else None


def finite(graph: GraphBuilder) -> Style | None:
    """Returns the style for factors: finite values, since the oracles multiply infinities by zero
    or by padding.
    """
    return "plain" if graph.style in ("extreme", "limits") else None
