"""Evaluation of classical machine learning; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from byoc_mlir.dialects.relay import ml as relay
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.tensors import Array

_AGGREGATES: dict[str, tuple[Any, float]] = {
    "sum": (np.add, 0.0),
    "min": (np.minimum, np.inf),
    "max": (np.maximum, -np.inf),
}
"""Combining function of each aggregate, with its initial value."""


def _tree_ensemble(op: relay.TreeEnsembleOp, data: Array, *tables: Array) -> Array:
    roots, depths, lefts, features, thresholds, leaves, firsts, weights = tables
    rows = np.arange(data.shape[0])
    combine, start = _AGGREGATES[op.aggregate.data]
    output = np.full((data.shape[0], op.targets.value.data), start, data.dtype)
    for root, depth in zip(roots, depths, strict=True):
        nodes = np.full(data.shape[0], root, np.int64)
        for _ in range(depth):
            nodes = lefts[nodes] + (data[rows, features[nodes]] <= thresholds[nodes])
        reached = leaves[nodes]
        for offset in range(weights.shape[1]):
            places = rows, firsts[reached] + offset
            output[places] = combine(output[places], weights[reached, offset])
    return output


def _pairwise_coupling(op: relay.PairwiseCouplingOp, data: Array) -> Array:
    count = op.classes.value.data
    rounds, bound = max(100, count), 0.005 / count
    return np.array([_coupled(row, count, rounds, bound) for row in data], data.dtype).reshape(
        len(data), count
    )


def _coupled(pairs: Array, count: int, rounds: int, bound: float) -> Array:
    against = np.zeros((count, count), pairs.dtype)
    against[np.triu_indices(count, 1)] = pairs
    against = against + np.tril(1 - against.T, -1)
    matrix = -against.T * against
    np.fill_diagonal(matrix, (against**2).sum(0))
    shares = np.full(count, 1 / count, pairs.dtype)
    for _ in range(rounds):
        slopes = matrix @ shares
        mean = shares @ slopes
        if np.abs(slopes - mean).max() < bound:
            break
        for place in range(count):
            own = matrix[place, place]
            step = (mean - slopes[place]) / own
            shares[place] += step
            mean = (mean + step * (step * own + 2 * slopes[place])) / (1 + step) ** 2
            slopes = (slopes + step * matrix[place]) / (1 + step)
            shares /= 1 + step
    return shares


FUNCTIONS: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    relay.TreeEnsembleOp: _tree_ensemble,
    relay.PairwiseCouplingOp: _pairwise_coupling,
}
