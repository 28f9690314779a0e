"""Trial of the implementation that oneDNN has for an op, before partitioning."""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from byoc_mlir.backends.dnnl.partition.reference_code import only_reference
from byoc_mlir.backends.dnnl.passes.convert_relay_to_dnnl import convert_region
from byoc_mlir.backends.dnnl.passes.unfold_dnnl_deconvolutions import unfold_deconvolutions
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.onednn.engine import openmp_threads
from byoc_mlir.onednn.library import unavailable_reason

_known: dict[Hashable, str | None] = {}
"""Cached results of `slow_here`, by a key of the op."""


def slow_here(op: Operation) -> str | None:
    """Returns why oneDNN should not run a `relay` op: it has only reference code for the op.

    Returns `None` if oneDNN has faster code in any layout, or if oneDNN is not installed.
    """
    types = [value.type for value in (*op.operands, *op.results)]
    constants = [isinstance(value.owner, ConstantOp) for value in op.operands]
    properties = sorted(op.properties.items(), key=lambda one: one[0])
    key = (op.name, tuple(types), tuple(constants), tuple(properties))
    if key not in _known:
        _known[key] = _found(region_of(op))
    return _known[key]


def region_of(op: Operation) -> FuncOp:
    """Returns a region that contains a copy of one op or composite."""
    inputs = [value for value in op.operands if not isinstance(value.owner, ConstantOp)]
    block = Block(arg_types=[value.type for value in inputs])
    mapped: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for value in op.operands:
        if isinstance(value.owner, ConstantOp) and value not in mapped:
            constant = value.owner.clone()
            block.add_op(constant)
            mapped[value] = constant.output
    alone = op.clone(mapped)
    result = alone.results[0]
    block.add_ops([alone, ReturnOp(result)])
    return FuncOp("trial", ([one.type for one in block.args], [result.type]), Region(block))


def _found(func: FuncOp) -> str | None:
    if unavailable_reason() is not None:
        return None
    convert_region(func)
    unfold_deconvolutions(func)
    with openmp_threads(1):
        found = [only_reference(op) for op in func.body.block.ops if op.results]
    name = next((one for one in found if one is not None), None)
    return None if name is None else f"oneDNN has only reference code for it here ({name})"
