"""Warning about denormal weights: many processors compute slowly with them."""

from __future__ import annotations

from random import Random

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.dialects.relay import ConstantOp, WeightAttr
from byoc_mlir.dialects.relay.constant import Array
from byoc_mlir.names import printable
from byoc_mlir.warned import warn

_LARGE = 1 << 12
"""Minimum number of elements of a tensor to check."""

_RANDOM = Random(0)  # numpy.random takes 10 ms to import
_SAMPLES = np.array([_RANDOM.random() for _ in range(1 << 11)])
"""Positions to check, as fractions of the size; they are random, because denormals may form
columns.
"""

_MANY = 0.01


def warn_of_denormals(module: ModuleOp) -> None:
    """Warns if more than 1 % of a large weight is denormal."""
    shares = {
        op.value.data.name: denormal_share(op.array)
        for op in module.walk()
        if isinstance(op, ConstantOp) and isinstance(op.value, WeightAttr)
    }
    many = {printable(name): share for name, share in shares.items() if share > _MANY}
    named = [f"'{name}' ({share:.0%})" for name, share in many.items()]
    if named:
        others = f" and {len(named) - 3} more" if len(named) > 3 else ""
        warn(
            f"many elements of weight {', '.join(named[:3])}{others} are denormal, which may make"
            " runs slow; denormals='flush' replaces them by zero, docs/processes.md says more",
        )


def denormal_share(array: Array) -> float:
    """Estimates the fraction of an array's elements that are denormal.

    The result is 0 for small arrays, and for types other than `float32` and `float64`.
    """
    if array.size < _LARGE or array.dtype.name not in ("float32", "float64"):
        return 0.0
    sizes = np.abs(array.reshape(-1)[(_SAMPLES * array.size).astype(np.int64)])
    return float(np.mean((sizes > 0) & (sizes < np.finfo(array.dtype).tiny)))
