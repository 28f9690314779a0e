"""Ops of the interpreter tier, one file for each kind.

An op is a function of operands, which are `None` if omitted, and of attributes by name. It may take
the node's `opset`, and the number of its `outputs`. An op that caches constants in a layout of its
own is a class, created with the constant operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from byoc_mlir.interpreter.ops import (
    attention,
    blockwise,
    convolution,
    elementwise,
    index,
    matrix,
    pool,
    rearrange,
    recurrent,
    rows,
)

OPS: Mapping[str, Callable[..., Any]] = {
    **attention.OPS,
    **blockwise.OPS,
    **convolution.OPS,
    **elementwise.OPS,
    **index.OPS,
    **matrix.OPS,
    **pool.OPS,
    **rearrange.OPS,
    **recurrent.OPS,
    **rows.OPS,
}
"""Implementations by their names, as in `schemas.name_of`."""
