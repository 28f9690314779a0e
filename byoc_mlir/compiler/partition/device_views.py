"""Reshapes that are views in the memory of a device: no op runs for them anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay.transform import ExpandDimsOp, ReshapeOp, SqueezeOp

_VIEWS = (ReshapeOp, SqueezeOp, ExpandDimsOp)


def viewed(value: SSAValue) -> SSAValue:
    """Returns the value that a chain of reshapes views."""
    while isinstance(value.owner, _VIEWS):
        value = value.owner.operands[0]
    return value


def users(value: SSAValue) -> Iterator[Operation]:
    """Yields the ops that use a value, or a view of it."""
    for use in value.uses:
        if isinstance(use.operation, _VIEWS):
            yield from users(use.operation.results[0])
        else:
            yield use.operation


def device_views(module: ModuleOp, regions: Mapping[str, str]) -> dict[Operation, str]:
    """Returns the reshapes of host functions that are views on a device, with the device: of a
    value of its regions, or of a value that only its regions use.

    Args:
        regions: devices of the regions that run on one, by symbol.
    """
    found: dict[Operation, str] = {}
    for block in host_blocks(module):
        for op in block.ops:
            device = _device(op, regions) if isinstance(op, _VIEWS) else None
            if device is not None:
                found[op] = device
    return found


def _device(view: Operation, regions: Mapping[str, str]) -> str | None:
    owner = viewed(view.results[0]).owner
    made_on = _space(owner, regions) if isinstance(owner, Operation) else None
    used_on = {_space(user, regions) for user in users(view.results[0])}
    return made_on or (used_on.pop() if len(used_on) == 1 else None)


def _space(op: Operation, regions: Mapping[str, str]) -> str | None:
    """Returns the device of a region's call; `None` for other ops."""
    return regions.get(op.callee.root_reference.data) if isinstance(op, CallOp) else None
