"""Packing of constant matrices into panels, each as wide as a block."""

from __future__ import annotations

from byoc_mlir.dialects.relay.constant import Array, derived_array
from byoc_mlir.tensors import aligned_empty


def panels(matrix: Array, width: int) -> Array:
    """Packs `[units, depth]` into panels `[ceil(units / width), depth, width]`, with zeros at the
    end.

    A call then reads one panel contiguously; rows of the whole matrix would be far apart.
    """
    return derived_array(("openblas panels", width), [matrix], lambda: _made(matrix, width))


def _made(matrix: Array, width: int) -> Array:
    units, depth = matrix.shape
    found = aligned_empty((-(-units // width), depth, width), matrix.dtype)
    for number, panel in enumerate(found):
        some = matrix[number * width : (number + 1) * width]
        panel[:, : len(some)] = some.T
        panel[:, len(some) :] = 0
    return found
