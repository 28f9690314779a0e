"""The `relay` dialect: neural network ops on tensors, named as in TVM's Relay.

There is one file per family; every op class of a file is registered (`dialect.py`).
"""

from __future__ import annotations

from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.dialects.relay.constant import ConstantOp, Weight, WeightAttr
from byoc_mlir.dialects.relay.shape import ShapeAttr, SizeAttr
from byoc_mlir.dialects.relay.symbols import GuardOp, SymbolOp

__all__ = [
    "ConstantOp",
    "GuardOp",
    "RelayOp",
    "ShapeAttr",
    "SizeAttr",
    "SymbolOp",
    "Weight",
    "WeightAttr",
]
