"""Regions that the host compiler runs as fast as oneDNN, or faster."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay.base import relay_name

_FASTER_HERE = ("conv", "lrn", "lstm", "gru", "resize")
"""Prefixes of the names of ops for which oneDNN has faster code than the host compiler. It has none
for pools of row-major images, which it would first bring into blocks."""


def faster_on_host(region: FuncOp) -> str | None:
    """Returns why the host is faster for a region of matmuls or pools, or `None`.

    Both oneDNN and the host run matmuls near the peak of the processor. But the host prefetches the
    next weights, and its code for the ops around matmuls, such as gelu, takes less time. Times are
    in `docs/dev-notes/dnnl.md`.
    """
    if any(_is_faster_here(op) for op in region.walk()):
        return None
    return "matmuls, pools and the ops around them are as fast on the host"


def _is_faster_here(op: Operation) -> bool:
    if isinstance(op, CompositeOp):
        return False
    name = relay_name(op).rpartition(".")[2]
    return name.startswith(_FASTER_HERE) or not all(map(_is_f32, op.results))


def _is_f32(value: SSAValue) -> bool:
    """True if a value is `f32`; regions with other types are not faster on the host."""
    return isinstance(value.type, TensorType) and value.type.element_type == f32
