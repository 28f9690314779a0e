"""Numpy semantics of the ops on bits; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from byoc_mlir.dialects.relay import bits as relay
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.tensors import Array


def _reinterpret(op: relay.ReinterpretOp, data: Array) -> Array:
    return np.ascontiguousarray(data).reshape(data.shape).view(numpy_dtype(op.dtype))


BITS: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    relay.ReinterpretOp: _reinterpret
}
