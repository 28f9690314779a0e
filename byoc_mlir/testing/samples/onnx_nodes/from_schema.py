"""Nodes of any op, generated from its schema alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from onnx import helper
from onnx.defs import OpSchema

from byoc_mlir.testing.samples.onnx_nodes.choices import some_axes, some_axis
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.tensor import (
    DTYPES,
    RejectedError,
    Tensor,
    allowed_dtypes,
)
from byoc_mlir.testing.samples.onnx_nodes.values import Dtype, broadcastable

_Option = OpSchema.FormalParameterOption
_Kind = OpSchema.AttrType
_Draw: TypeAlias = Callable[[RandomGraph, int], Any]


def from_schema(graph: RandomGraph, op_type: str, domain: str = "") -> None:
    """Adds a node whose inputs and attributes have the types of the schema.

    Raises:
        RejectedError: the drawn inputs and attributes do not fit together.
    """
    schema = graph.schema(op_type, domain)
    inputs = _inputs(graph, schema)
    rank = len(inputs[0].shape or ()) if inputs and inputs[0] is not None else 0
    attributes = {
        name: _attribute(graph, attribute, rank)
        for name, attribute in schema.attributes.items()
        if attribute.required or graph.rng.random() < 0.4
    }
    most = min(schema.max_output, schema.min_output + 2)
    outputs = graph.rng.randint(schema.min_output, most)
    graph.emit(op_type, inputs, max(outputs, 1), domain, **attributes)


def _inputs(graph: RandomGraph, schema: OpSchema) -> list[Tensor | None]:
    bound: dict[str, Dtype] = {}
    inputs: list[Tensor | None] = []
    for formal in _formals(graph, schema):
        if formal.option == _Option.Optional and graph.rng.random() < 0.4:
            inputs.append(None)
            continue
        inputs.append(_input(graph, formal, inputs, bound))
    while inputs and inputs[-1] is None:
        inputs.pop()
    return inputs


def _formals(graph: RandomGraph, schema: OpSchema) -> Iterator[OpSchema.FormalParameter]:
    for formal in schema.inputs:
        variadic = formal.option == _Option.Variadic
        count = graph.rng.randint(max(1, formal.min_arity), 4) if variadic else 1
        for _ in range(count):
            yield formal


def _input(
    graph: RandomGraph,
    formal: OpSchema.FormalParameter,
    earlier: list[Tensor | None],
    bound: dict[str, Dtype],
) -> Tensor:
    first = next((value for value in earlier if value is not None), None)
    allowed = allowed_dtypes(formal)
    if formal.type_str in bound and formal.is_homogeneous:
        allowed = [bound[formal.type_str]]
    kind = graph.rng.random()
    if first is None or first.shape is None:
        made = graph.tensor(allowed)
    elif kind < 0.45:
        made = graph.tensor(allowed, first.shape)
    elif kind < 0.85:
        made = graph.tensor(allowed, broadcastable(graph.rng, first.shape))
    else:
        made = graph.tensor(allowed, graph.rng.choice([(), (1,), first.shape[-1:]]))
    bound.setdefault(formal.type_str, made.dtype)
    return made


def _attribute(graph: RandomGraph, attribute: OpSchema.Attribute, rank: int) -> Any:
    named = _NAMED.get(attribute.name)
    if named is not None:
        return named(graph, rank)
    default = helper.get_attribute_value(attribute.default_value) if _has(attribute) else None
    if attribute.type == _Kind.INT:
        return graph.rng.choice([0, 1, 1, 2, default if isinstance(default, int) else 1])
    if attribute.type == _Kind.FLOAT:
        return graph.rng.choice([0.0, 0.5, 1.0, -1.5, 2.0, default if default is not None else 1.0])
    if attribute.type == _Kind.INTS:
        return [graph.rng.randint(0, 3) for _ in range(graph.rng.choice([1, 2, rank, 2 * rank]))]
    if attribute.type == _Kind.FLOATS:
        return [graph.rng.randint(-4, 4) / 2 for _ in range(graph.rng.randint(1, 3))]
    if attribute.type == _Kind.STRING and default is not None:
        return default
    if attribute.required:
        raise RejectedError(f"the attribute {attribute.name} cannot be made up")
    return None


def _has(attribute: OpSchema.Attribute) -> bool:
    return attribute.default_value.name != ""


def _axes(graph: RandomGraph, rank: int) -> list[int] | None:
    return some_axes(graph, rank, 1) or None


def _flag(graph: RandomGraph, rank: int) -> int:
    return graph.rng.randint(0, 1)


def _small(graph: RandomGraph, rank: int) -> float:
    return graph.rng.choice([1e-5, 1e-3, 0.1])


def _slope(graph: RandomGraph, rank: int) -> float:
    return graph.rng.choice([0.01, 0.2, 0.5, 1.0, 1.5, 3.0])


def _dtype(graph: RandomGraph, rank: int) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(graph.rng.choice(DTYPES)))


def _distinct(graph: RandomGraph, rank: int) -> list[int]:
    return graph.rng.sample(range(-2, 6), graph.rng.randint(1, 5))


def _one_of(*texts: str) -> _Draw:
    def draw(graph: RandomGraph, rank: int) -> str:
        return graph.rng.choice(texts)

    return draw


_NAMED: dict[str, _Draw] = {
    "cats_int64s": _distinct,
    "axis": some_axis,
    "axes": _axes,
    "keepdims": _flag,
    "broadcast": _flag,
    "epsilon": _small,
    "alpha": _slope,
    "to": _dtype,
    "dtype": _dtype,
    "noop_with_empty_axes": _flag,
    "select_last_index": _flag,
    "sorted": _flag,
    "exclusive": _flag,
    "reverse": _flag,
    "approximate": _one_of("none", "tanh"),
    "direction": _one_of("LEFT", "RIGHT"),
    "reduction": _one_of("none", "mean", "sum"),
}
"""Generators of attributes by name, from the graph and the rank of the first input."""
