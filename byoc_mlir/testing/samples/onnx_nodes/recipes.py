"""Registry of the functions that generate nodes of an op; other ops are generated from their
schema.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import onnx

from byoc_mlir.frontend import import_model
from byoc_mlir.frontend.known_ops import has_standard_function
from byoc_mlir.frontend.registry import all_ops
from byoc_mlir.testing.samples.onnx_nodes.from_schema import from_schema
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.tensor import MICROSOFT, RejectedError

assert import_model  # the frontend registers its ops

_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview.training")
_ATTEMPTS = 12

Recipe: TypeAlias = Callable[[RandomGraph, str], None]
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


def add_node(graph: RandomGraph, op_type: str, domain: str = "") -> bool:
    """Adds a node of the op, and the values it needs; returns false if every attempt is
    rejected.
    """
    for _ in range(_ATTEMPTS):
        try:
            with graph.attempt():
                if (domain, op_type) in RECIPES:
                    RECIPES[domain, op_type](graph, op_type)
                else:
                    from_schema(graph, op_type, domain)
                return True
        except RejectedError:
            continue
    return False


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
