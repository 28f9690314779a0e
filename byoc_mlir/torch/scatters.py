"""Decompositions of operations that replace some elements of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from byoc_mlir.torch.tensors import pytorch


def as_strided_scatter(
    x: Any, source: Any, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Any:
    """Returns `x` with `source` at the places of its memory that sizes and strides name."""
    torch = pytorch()
    numbers = (*x.shape, *size, *stride)
    if not x.is_contiguous() or not all(isinstance(one, int) for one in numbers):
        return NotImplemented
    places = torch.full((), offset or 0, dtype=torch.int64)
    for count, step in zip(size, stride, strict=True):
        places = places.unsqueeze(-1) + torch.arange(count) * step
    return _replaced(x, places, source)


def put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Returns `x` with `source` at places of its elements in a row."""
    return _replaced(x, pytorch().where(index < 0, index + x.numel(), index), source, accumulate)


def _replaced(x: Any, places: Any, source: Any, accumulate: bool = False) -> Any:
    form = pytorch().ops.aten.index_put.default
    return form(x.reshape(-1), [places.reshape(-1)], source.reshape(-1), accumulate).reshape(
        x.shape
    )


def diagonal_scatter(x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Returns `x` with `source` on a diagonal."""
    torch = pytorch()
    moved = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = moved.shape[-2:]
    distances = torch.arange(columns) - torch.arange(rows).unsqueeze(-1)
    axis, size = (-1, rows) if offset >= 0 else (-2, columns)
    wide = torch.constant_pad_nd(source, [0, size - source.shape[-1]]).unsqueeze(axis)
    return torch.where(distances == offset, wide, moved).movedim((-2, -1), (dim1, dim2))


def index_reduce(
    x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Returns `x` with slices of `source` reduced into its slices."""
    form = pytorch().ops.aten.scatter_reduce.two
    if not x.dim():
        x, source = x.reshape(1), source.reshape(1)
        return form(x, 0, index.reshape(1), source, reduce, include_self=include_self).reshape(())
    sizes = [1] * x.dim()
    sizes[dim] = -1
    places = index.reshape(sizes).expand(source.shape)
    return form(x, dim, places, source, reduce, include_self=include_self)
