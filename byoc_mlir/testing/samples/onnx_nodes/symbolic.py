"""Models whose inputs have symbolic sizes: one compilation, several shapes."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import onnx
from onnx import shape_inference

from byoc_mlir.tensors import Array
from byoc_mlir.testing.reference import Arrays
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.tensor import GraphInput
from byoc_mlir.testing.samples.onnx_nodes.values import random_array

_MOST_SETS = 3
_ATTEMPTS = 8


def with_symbols(
    graph: RandomGraph, model: onnx.ModelProto
) -> tuple[onnx.ModelProto, tuple[Arrays, ...]]:
    """Returns the graph's model with symbolic dimensions for some sizes of its inputs, and inputs
    of up to three shapes.

    Equal sizes mostly get one name. A shape is kept if ONNX's shape inference accepts the model
    with it.
    """
    rng, inputs = graph.rng, graph.inputs
    symbols = _symbols(rng, inputs)
    feeds: list[Arrays] = [graph.feeds]
    for _ in range(_ATTEMPTS):
        sizes = {symbol: rng.choice([1, 2, 3, 4, 6, 9]) for symbol in sorted(set(symbols.values()))}
        if len(feeds) < _MOST_SETS and sizes and _fits(model, symbols, sizes):
            feeds.append({e.tensor.name: _resized(rng, e, symbols, sizes) for e in inputs})
    return _named(model, symbols), tuple(feeds)


def _symbols(rng: Random, inputs: list[GraphInput]) -> dict[tuple[str, int], str]:
    """Returns the name of each size that becomes symbolic, by input and axis."""
    by_size = rng.random() < 0.8
    symbols: dict[tuple[str, int], str] = {}
    for entry in inputs:
        if entry.style is None:
            continue
        for axis, size in enumerate(entry.value.shape):
            if rng.random() < 0.7:
                symbols[entry.tensor.name, axis] = f"n{size if by_size else len(symbols)}"
    return symbols


def _resized(
    rng: Random, entry: GraphInput, symbols: Mapping[tuple[str, int], str], sizes: dict[str, int]
) -> Array:
    if entry.style is None:
        return entry.value
    shape = list(entry.value.shape)
    for axis in range(len(shape)):
        symbol = symbols.get((entry.tensor.name, axis))
        if symbol is not None:
            shape[axis] = sizes[symbol]
    return random_array(rng, entry.value.dtype, shape, entry.style)


def _fits(
    model: onnx.ModelProto, symbols: Mapping[tuple[str, int], str], sizes: dict[str, int]
) -> bool:
    sized = _without_output_shapes(model)
    for value in sized.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            symbol = symbols.get((value.name, axis))
            if symbol is not None:
                dim.dim_value = sizes[symbol]
    try:
        shape_inference.infer_shapes(sized, True, True, True)
    except Exception:  # a RuntimeError or one of onnx's, by version
        return False
    return True


def _named(model: onnx.ModelProto, symbols: Mapping[tuple[str, int], str]) -> onnx.ModelProto:
    named = _without_output_shapes(model)
    for value in named.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            symbol = symbols.get((value.name, axis))
            if symbol is not None:
                dim.dim_param = symbol
    return named


def _without_output_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.output:
        value.type.tensor_type.ClearField("shape")
    return copy
