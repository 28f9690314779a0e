"""A region as a model of its own."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp

from byoc_mlir.dialects.byoc import TIMES

_NAME = "region"


def alone(region: FuncOp) -> tuple[ModuleOp, FuncOp]:
    """A model that is one region, and that region in it; equal ones for equal regions."""
    function = region.clone()
    for op in function.walk():
        arguments = (
            value for inner in op.regions for block in inner.blocks for value in block.args
        )
        for value in (*op.results, *arguments):
            value.name_hint = None
    function.properties["sym_name"] = StringAttr(_NAME)
    function.attributes.pop(TIMES, None)
    type_ = region.function_type
    main = FuncOp("main", type_)
    block = main.body.block
    call = CallOp(_NAME, block.args, type_.outputs.data)
    block.add_ops([call, ReturnOp(*call.results)])
    return ModuleOp([main, function]), function
