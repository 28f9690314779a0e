"""The `relay` dialect: neural network ops on tensors, named as in TVM's Relay.

One file per family; every op class of a family file is registered.
"""

from __future__ import annotations

import inspect
from types import ModuleType

from xdsl.ir import Dialect

from byoc_mlir.dialects.relay import (
    bits,
    blockwise,
    checked,
    constant,
    control,
    elementwise,
    image,
    index,
    logic,
    ml,
    nn,
    onnx_node,
    pool,
    qnn,
    qnn_window,
    random,
    recurrent,
    reduce,
    size,
    transform,
    vision,
    window,
)
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

FAMILIES: tuple[ModuleType, ...] = (
    constant,
    bits,
    blockwise,
    checked,
    control,
    elementwise,
    image,
    index,
    logic,
    ml,
    nn,
    onnx_node,
    pool,
    qnn,
    qnn_window,
    random,
    recurrent,
    reduce,
    size,
    transform,
    vision,
    window,
)


def _ops(family: ModuleType) -> list[type[RelayOp]]:
    return [
        item
        for item in vars(family).values()
        if inspect.isclass(item)
        and item.__module__ == family.__name__  # first: xDSL's classes take long to say no
        and issubclass(item, RelayOp)
        and "name" in vars(item)
    ]


RELAY = Dialect(
    "relay",
    [*(op for family in FAMILIES for op in _ops(family)), SymbolOp, GuardOp],
    [WeightAttr, ShapeAttr, SizeAttr],
)
