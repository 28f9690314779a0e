"""Lookups of strings without ONNX's evaluator, whose steps for one node take ten microseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from byoc_mlir.tensors import Array

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator

Function = Callable[..., Sequence[Any]]
"""Function from a node's inputs to its outputs."""

_VALUES = {"values_floats": np.float32, "values_int64s": np.int64, "values_strings": object}
_DEFAULTS = {
    "values_floats": "default_float",
    "values_int64s": "default_int64",
    "values_strings": "default_string",
}


def runner_of(evaluator: ReferenceEvaluator) -> Callable[[Mapping[str, Array]], Sequence[Any]]:
    """Returns a function that runs the nodes of an evaluator's model, lookups directly."""
    nodes: Sequence[Any] = evaluator.rt_nodes_
    if any(node.need_context() for node in nodes):
        return lambda inputs: cast("Sequence[Any]", evaluator.run(None, dict(inputs)))
    steps = [
        (_lookup_of(node) or node.run, tuple(node.input), tuple(node.output)) for node in nodes
    ]
    known = {"": None, **evaluator.rt_inits_}
    outputs = cast("Sequence[str]", evaluator.output_names)

    def run(inputs: Mapping[str, Array]) -> Sequence[Any]:
        values: dict[str, Any] = {**known, **inputs}
        for function, read, written in steps:
            results = function(*[values[name] for name in read])
            values.update(zip(written, results))  # noqa: B905, it takes longer
        return [values[name] for name in outputs]

    return run


def _lookup_of(node: Any) -> Function | None:
    """Returns the direct function of an evaluator's node; None for ops that have none."""
    match node.op_type:
        case "ArrayFeatureExtractor":
            return _extracted
        case "OneHotEncoder" if node.cats_strings:
            return _one_hot(node.cats_strings, allows_others=bool(node.zeros))
        case "LabelEncoder" if node.keys_strings:
            return _labels(node)
        case "Gather":
            return partial(_taken, node.axis)
        case "Concat":
            return partial(_joined, node.axis)
        case _:
            return None


def _taken(axis: int, data: Array, places: Array) -> Sequence[Array]:
    return (np.take(data, places, axis=axis),)


def _joined(axis: int, *parts: Array) -> Sequence[Array]:
    return (np.concatenate(parts, axis=axis),)


def _extracted(data: Array, places: Array) -> Sequence[Array]:
    taken = data[..., places.reshape(-1)]
    return (taken.reshape(1, -1) if data.ndim == 1 else taken,)


def _labels(node: Any) -> Function | None:
    given = [name for name in _VALUES if getattr(node, name, None)]
    if len(given) != 1:
        return None
    table = dict(zip(node.keys_strings, getattr(node, given[0]), strict=False))
    default, dtype = getattr(node, _DEFAULTS[given[0]]), np.dtype(_VALUES[given[0]])

    def encode(texts: Array) -> Sequence[Array]:
        return (_found(texts, table, default, dtype),)

    return encode


def _one_hot(categories: Sequence[str], *, allows_others: bool) -> Function:
    places = {text: place for place, text in enumerate(categories)}
    count = len(places)
    rows, dtype = np.eye(count + 1, count, dtype=np.float32), np.dtype(np.int64)
    """Row of each category, and zeros for other strings; type of their numbers."""

    def encode(texts: Array) -> Sequence[Array]:
        found = _found(texts, places, count, dtype)
        if not allows_others and (found == count).any():
            text = texts[found == count][0]
            raise ValueError(f"{text!r} is none of the categories {list(categories)}")
        return (rows.take(found, axis=0),)

    return encode


def _found(texts: Array, table: Mapping[str, Any], default: object, dtype: np.dtype[Any]) -> Array:
    """Returns the values of strings, in the shape of the strings."""
    values = map(table.get, texts.ravel().tolist(), repeat(default))
    return np.fromiter(values, dtype, texts.size).reshape(texts.shape)
