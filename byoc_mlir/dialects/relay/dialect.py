"""The dialect object, with the ops of all families: for parsers, and for lists of all ops."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from xdsl.ir import Dialect

from byoc_mlir.dialects import relay
from byoc_mlir.dialects.operations import operations_in
from byoc_mlir.dialects.relay.constant import WeightAttr
from byoc_mlir.dialects.relay.shape import ShapeAttr, SizeAttr

_MODULES = [
    import_module(f"{relay.__name__}.{info.name}")
    for info in iter_modules(relay.__path__)
    if not info.ispkg
]

FAMILIES: tuple[ModuleType, ...] = tuple(one for one in _MODULES if operations_in(vars(one)))
"""Modules that define ops."""

RELAY = Dialect("relay", operations_in(*map(vars, FAMILIES)), [WeightAttr, ShapeAttr, SizeAttr])
