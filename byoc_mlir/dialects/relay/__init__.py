"""The `relay` dialect: neural network ops on tensors, named as in TVM's Relay.

One file per family; every op class of a family file is registered.
"""

from __future__ import annotations

from types import ModuleType

from xdsl.ir import Dialect

from byoc_mlir.dialects.operations import operations_in
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


RELAY = Dialect(
    "relay",
    [*operations_in(*map(vars, FAMILIES)), SymbolOp, GuardOp],
    [WeightAttr, ShapeAttr, SizeAttr],
)
