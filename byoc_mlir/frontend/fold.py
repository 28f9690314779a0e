"""Nodes whose inputs are all known are computed at import, by the ONNX reference evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from byoc_mlir.dialects.relay.evaluate_onnx import reference_outputs
from byoc_mlir.frontend.value import Array

MAX_FOLDED_BYTES = 64 << 20
"""Larger results are left to run time, unless the node's inputs are as large."""

_RANDOM = frozenset(
    f"{name}{suffix}"
    for name in ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform")
    for suffix in ("", "Like")
)

_COMPUTED_OTHERWISE = frozenset(
    (
        "GatherElements",  # it may not end when an index is outside
        "GlobalMaxPool",  # with three axes, or five
        *("MaxPool", "AveragePool", "LpPool", "GlobalLpPool"),  # pads that differ, odd powers
        *("LpNormalization", "LSTM", "GRU", "RNN"),
        *("Softmax", "LogSoftmax", "Hardmax"),  # before opset 13 they are of rows
    )
)
"""What the reference evaluator computes wrongly in some forms; our own evaluators fold it later."""


def fold_node(
    node: onnx.NodeProto, inputs: Sequence[Array | None], opsets: Mapping[str, int]
) -> tuple[Array, ...] | None:
    """The outputs of a node whose present inputs are all known; `None` when it is not to be folded.

    Not folded are random ops, ops with subgraphs, what is computed otherwise, and what grows
    beyond `MAX_FOLDED_BYTES`.
    """
    if node.op_type in _RANDOM | _COMPUTED_OTHERWISE or any(
        attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
        for attribute in node.attribute
    ):
        return None
    limit = max([MAX_FOLDED_BYTES, *(array.nbytes for array in inputs if array is not None)])
    try:
        grown = _grown_size(node.op_type, inputs)
    except (ValueError, OverflowError, IndexError):  # no such size: for the importer to refuse
        return None
    if grown > limit:
        return None
    arrays = _evaluate(node, inputs, opsets)
    if arrays is None or sum(array.nbytes for array in arrays) > limit:
        return None
    return arrays


def filled(shape: Sequence[int], value: Array) -> Array:
    """The result of ConstantOfShape: `value`, one element, in every place."""
    array = np.broadcast_to(value.reshape(()), tuple(shape))
    return np.ascontiguousarray(array).reshape(tuple(shape))


def _grown_size(op_type: str, inputs: Sequence[Array | None]) -> int:
    """A lower bound of the output's bytes for the ops whose output size is a value of an input."""
    known = [array for array in inputs if array is not None]
    if op_type in ("Expand", "Tile") and len(known) > 1:
        factor = math.prod(max(1, int(size)) for size in known[1].reshape(-1))
        return factor * known[0].itemsize * (known[0].size if op_type == "Tile" else 1)
    if op_type == "Range" and len(known) == 3:
        start, limit, delta = (float(array.reshape(-1)[0]) for array in known)
        return int(abs((limit - start) / delta)) * known[0].itemsize if delta else 0
    if op_type == "ConstantOfShape" and known:
        return math.prod(int(size) for size in known[0].reshape(-1))
    if op_type == "OneHot" and len(known) == 3:
        return int(known[1].reshape(-1)[0]) * known[0].size * known[2].itemsize
    if op_type == "Pad" and len(known) > 1:
        pads = [max(0, int(size)) for size in known[1].reshape(-1)]
        return math.prod(
            size + sum(pads[axis :: known[0].ndim]) for axis, size in enumerate(known[0].shape)
        )
    return 0


def _evaluate(
    node: onnx.NodeProto, inputs: Sequence[Array | None], opsets: Mapping[str, int]
) -> tuple[Array, ...] | None:
    known = [array for array in inputs if array is not None]
    try:
        results = reference_outputs(node, known, opsets)
    except Exception:  # whatever it is, the importer will meet it and say it better
        return None
    if not all(isinstance(result, np.ndarray | np.generic) for result in results):
        return None
    found = iter(np.asarray(result) for result in results)
    return tuple(next(found) if name else np.empty(0) for name in node.output)
