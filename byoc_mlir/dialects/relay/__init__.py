"""The `relay` dialect: neural network ops on tensors, named as in TVM's Relay.

There is one file per family; every op class of a file is registered (`dialect.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.dialects.relay.constant import ConstantOp, Weight, WeightAttr
from byoc_mlir.dialects.relay.shape import ShapeAttr, SizeAttr
from byoc_mlir.dialects.relay.symbols import GuardOp, SymbolOp

if TYPE_CHECKING:
    from byoc_mlir.dialects.relay.dialect import RELAY

__all__ = [
    "RELAY",
    "ConstantOp",
    "GuardOp",
    "RelayOp",
    "ShapeAttr",
    "SizeAttr",
    "SymbolOp",
    "Weight",
    "WeightAttr",
]


def __getattr__(name: str) -> Any:
    """Imports the dialect, which has all families of ops, on first use."""
    if name != "RELAY":
        raise AttributeError(f"module 'byoc_mlir.dialects.relay' has no attribute {name!r}")
    from byoc_mlir.dialects.relay.dialect import RELAY

    return RELAY
