"""The `relay` dialect: neural network ops on tensors, named as in TVM's Relay.

There is one file per family; every op class of a file is registered.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from xdsl.ir import Dialect

from byoc_mlir.dialects.operations import operations_in
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.dialects.relay.constant import ConstantOp, Weight, WeightAttr
from byoc_mlir.dialects.relay.shape import ShapeAttr, SizeAttr
from byoc_mlir.dialects.relay.symbols import GuardOp, SymbolOp

__all__ = [
    "FAMILIES",
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

_MODULES = [
    import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__) if not info.ispkg
]

FAMILIES: tuple[ModuleType, ...] = tuple(one for one in _MODULES if operations_in(vars(one)))
"""Modules that define ops."""

RELAY = Dialect("relay", operations_in(*map(vars, FAMILIES)), [WeightAttr, ShapeAttr, SizeAttr])
