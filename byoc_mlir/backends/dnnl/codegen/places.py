"""Memory of every value of a region during a run, from the attributes that the passes wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from byoc_mlir.abi import WORKSPACE
from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.primitives.shared_memory import offset_in_root, root
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import ints
from byoc_mlir.errors import CompilationError


@dataclass(frozen=True)
class Outside:
    """Memory of a region's input or output, from a byte offset on; outputs follow the inputs."""

    index: int
    offset: int = 0


@dataclass(frozen=True)
class Workspace:
    """Memory in the region's workspace, from a byte offset on."""

    offset: int


@dataclass(frozen=True)
class Stored:
    """Memory of a constant."""

    constant: ConstantOp


Place: TypeAlias = Outside | Workspace | Stored


def workspace_bytes(func: FuncOp) -> int:
    """Returns the bytes of workspace that a region needs besides its inputs and outputs.

    Raises:
        CompilationError: no pass planned the workspace.
    """
    size = func.attributes.get(WORKSPACE)
    if not isinstance(size, IntegerAttr):
        raise CompilationError(
            f"@{func.sym_name.data} has no attribute {WORKSPACE}; run the pass place-dnnl-buffers"
        )
    return size.value.data


def places_of(func: FuncOp) -> dict[SSAValue, Place]:
    """Returns the memory of every value of a region.

    Raises:
        CompilationError: no pass planned the memory of a value.
    """
    block = func.body.block
    last = block.last_op
    assert isinstance(last, ReturnOp)
    places: dict[SSAValue, Place] = {
        argument: Outside(index) for index, argument in enumerate(block.args)
    }
    for op in block.ops:
        if isinstance(op, ConstantOp):
            places[op.output] = Stored(op)
        elif isinstance(op, dnnl.ExecutedOp) and op.offsets is not None:
            starts = zip(op.results, ints(op.offsets), strict=True)
            places |= {
                root(result): Workspace(start - offset_in_root(result))
                for result, start in starts
                if start >= 0
            }
    first = len(block.args)
    places |= {root(value): Outside(index) for index, value in enumerate(last.operands, first)}
    results = (result for op in block.ops for result in op.results)
    return {value: _place(value, places) for value in (*block.args, *results)}


def _place(value: SSAValue, places: dict[SSAValue, Place]) -> Place:
    place = places.get(root(value))
    if place is None:
        raise CompilationError(f"{value} has no place in memory; run the pass place-dnnl-buffers")
    return _moved(place, offset_in_root(value))


def _moved(place: Place, offset: int) -> Place:
    if isinstance(place, Stored):
        assert not offset
        return place
    return replace(place, offset=place.offset + offset)
