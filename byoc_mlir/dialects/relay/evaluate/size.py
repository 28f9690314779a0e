"""Numpy semantics of the ops that give sizes; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from byoc_mlir.dialects.relay import size as relay
from byoc_mlir.dialects.relay.base import RelayOp, ints
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.tensors import Array


def _sizes(op: relay.SizesOp) -> Array:
    return np.array(ints(op.values), numpy_dtype(op.dtype)).reshape(ints(op.newshape))


def _arange(op: relay.ArangeOp) -> Array:
    return np.arange(*ints(op.span)).astype(numpy_dtype(op.dtype))


SIZE: Mapping[type[RelayOp], Callable[..., Array]] = {
    relay.SizesOp: _sizes,
    relay.ArangeOp: _arange,
}
