"""Regions that the host compiler runs as fast as oneDNN, or faster."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from byoc_mlir.backends.dnnl.api import api
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay.base import relay_name

_FASTER_HERE = ("conv", "max_pool", "avg_pool", "global", "lrn", "lstm", "gru", "resize")
"""How the names of ops begin for which oneDNN has code that the host compiler does not match."""


def faster_on_host(region: FuncOp) -> str | None:
    """Why a region of products is left to the host; `None` for others. Times are in `docs/dnnl.md`.

    On both, products run near what the processor can do. The host fetches the next weights
    meanwhile, and what follows, such as gelu, costs it less.
    """
    if api().has_avx512 or any(_is_faster_here(op) for op in region.walk()):
        return None
    return "without AVX-512, matrix products and what is around them are as fast on the host"


def _is_faster_here(op: Operation) -> bool:
    if isinstance(op, CompositeOp):
        return False
    return relay_name(op).rpartition(".")[2].startswith(_FASTER_HERE)
