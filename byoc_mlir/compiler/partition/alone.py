"""Conversion of a region to a separate model."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp

from byoc_mlir.dialects.byoc import TIMES, WEIGHT_GROWTH
from byoc_mlir.transforms.inline_partitions import inline_regions

_NAME = "region"


def alone(region: FuncOp) -> ModuleOp:
    """Returns a model that consists of one region; equal regions give equal models."""
    return _with_region(region)[0]


def alone_on_host(region: FuncOp) -> ModuleOp:
    """Returns a model that consists of one region, whose ops the host runs."""
    module, function = _with_region(region)
    inline_regions(module, [function])
    return module


def _with_region(region: FuncOp) -> tuple[ModuleOp, FuncOp]:
    function = region.clone()
    for op in function.walk():
        arguments = (
            value for inner in op.regions for block in inner.blocks for value in block.args
        )
        for value in (*op.results, *arguments):
            value.name_hint = None
    function.properties["sym_name"] = StringAttr(_NAME)
    for of_model in (TIMES, WEIGHT_GROWTH):
        function.attributes.pop(of_model, None)
    type_ = region.function_type
    main = FuncOp("main", type_)
    block = main.body.block
    call = CallOp(_NAME, block.args, type_.outputs.data)
    block.add_ops([call, ReturnOp(*call.results)])
    return ModuleOp([main, function]), function
