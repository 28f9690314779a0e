"""Ops that read or write elements at places that a tensor holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from byoc_mlir.eager.ops.errors import NotEagerError
from byoc_mlir.eager.ops.op import Op
from byoc_mlir.tensors import Array


class Gather(Op):
    def _run(self, x: Array, indices: Array, axis: int = 0) -> tuple[Array]:
        return (np.asarray(x.take(indices, axis)),)


class GatherElements(Op):
    def _run(self, x: Array, indices: Array, axis: int = 0) -> tuple[Array]:
        return (x[_places(x, indices, axis)],)


class GatherND(Op):
    def _run(self, x: Array, indices: Array, batch_dims: int = 0) -> tuple[Array]:
        shape = indices.shape[:-1]
        if x.shape[:batch_dims] != shape[:batch_dims]:
            raise NotEagerError("batches of data that are not those of the indices")
        grid = np.ogrid[tuple(slice(size) for size in shape)][:batch_dims]
        return (np.asarray(x[(*grid, *np.moveaxis(indices, -1, 0))]),)


class ScatterElements(Op):
    def _run(
        self, x: Array, indices: Array, updates: Array, axis: int = 0, reduction: str = "none"
    ) -> tuple[Array]:
        if updates.shape != indices.shape:
            raise NotEagerError("updates that are not of the shape of the places")
        return (_scattered(x, _places(x, indices, axis), updates, reduction),)


class ScatterND(Op):
    def _run(
        self, x: Array, indices: Array, updates: Array, reduction: str = "none"
    ) -> tuple[Array]:
        if updates.shape != (*indices.shape[:-1], *x.shape[indices.shape[-1] :]):
            raise NotEagerError("updates that are not of the shape of the places")
        return (_scattered(x, tuple(np.moveaxis(indices, -1, 0)), updates, reduction),)


def _places(x: Array, indices: Array, axis: int) -> tuple[Any, ...]:
    """The places that indices along an axis mean."""
    if x.ndim != indices.ndim or not x.ndim:
        raise NotEagerError("indices of another rank than the data")
    places = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
    places[axis] = indices
    return tuple(places)


def _scattered(x: Array, places: Any, updates: Array, reduction: str) -> Array:
    """A copy with updates at places, the last one where several are of one."""
    result = x.copy()
    if reduction == "none":
        result[places] = updates
    else:
        _REDUCTIONS[reduction].at(result, places, updates)
    return result


_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


class TopK(Op):
    def _run(
        self,
        x: Array,
        k: Any,
        axis: int = -1,
        largest: int = 1,
        **_: object,
    ) -> tuple[Array, Array]:
        count = int(np.asarray(k).reshape(()))
        if not x.ndim or not 0 <= count <= x.shape[axis]:
            raise NotEagerError("more elements than there are")
        if largest:  # in reverse, so that of equal ones the first stays the first
            places = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, "stable"), axis)
        else:
            places = np.argsort(x, axis, "stable")
        first = places.take(np.arange(count), axis)
        return np.take_along_axis(x, first, axis), first.astype(np.int64)


class NonZero(Op):
    def _run(self, x: Array) -> tuple[Array]:
        return (np.array(np.nonzero(x), np.int64),)


OPS = (Gather, GatherElements, GatherND, ScatterElements, ScatterND, TopK, NonZero)
