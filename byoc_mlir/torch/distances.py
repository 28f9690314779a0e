"""Decompositions of distances between rows."""

from __future__ import annotations

from typing import Any

from byoc_mlir.torch.tensors import pytorch

_LEAST_ROWS = 25
"""Number of rows from which PyTorch computes Euclidean distances by a product of matrices."""


def cdist(a: Any, b: Any, power: float, mode: int | None) -> Any:
    """Returns the distances of all rows of `a` from all rows of `b`."""
    rows = a.shape[-2], b.shape[-2]
    if not all(isinstance(one, int) for one in rows):
        return NotImplemented
    if not a.shape[-1]:
        return a.new_zeros((*a.shape[:-1], rows[1]))
    if power == 2 and (mode == 1 or (not mode and max(rows) > _LEAST_ROWS)):
        squares = [(one * one).sum(-1) for one in (a, b)]
        sums = squares[0].unsqueeze(-1) + squares[1].unsqueeze(-2)
        return (sums - 2 * a @ b.mT).clamp_min(0).sqrt()
    return _norm(a.unsqueeze(-2) - b.unsqueeze(-3), power)


def pdist(x: Any, power: float = 2) -> Any:
    """Returns the distances of all pairs of rows."""
    count = x.shape[0]
    if not isinstance(count, int):
        return NotImplemented
    if count < 2:
        return x.new_zeros(0)
    return pytorch().cat([_norm(x[row] - x[row + 1 :], power) for row in range(count - 1)])


def _norm(x: Any, power: float) -> Any:
    if power == 0:
        return (x != 0).to(x.dtype).sum(-1)
    return pytorch().linalg.vector_norm(x, power, -1)
