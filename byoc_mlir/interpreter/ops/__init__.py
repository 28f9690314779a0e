"""The ops that are run node by node, one file a kind.

An op is a function of operands, of which `None` are left out, and of attributes by their names; it
may take the node's `opset`, and the number of its `outputs`. An op that keeps constants in a layout
of its own is a class, made with the constants among the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from byoc_mlir.interpreter.ops import (
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
    **convolution.OPS,
    **elementwise.OPS,
    **index.OPS,
    **matrix.OPS,
    **pool.OPS,
    **rearrange.OPS,
    **recurrent.OPS,
    **rows.OPS,
}
"""By their names in ONNX's default domain."""
