"""Placement of regions on devices: connected ones are compared with the host, with their copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.backends import Backend, CodegenContext
from byoc_mlir.compiler.devices import device_of
from byoc_mlir.compiler.partition.device_views import users, viewed
from byoc_mlir.compiler.partition.host_costs import bytes_of, estimated_times
from byoc_mlir.dialects.byoc import host_blocks, region_compiler
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.runtime.report import RegionTimes
from byoc_mlir.transforms.region_times import set_times


@dataclass(frozen=True)
class _Region:
    """Region on a device, with its call and its estimated times."""

    function: FuncOp
    call: CallOp
    backend: Backend
    times: RegionTimes


def device_decisions(
    module: ModuleOp, backends: Sequence[Backend], context: CodegenContext
) -> dict[FuncOp, str | None]:
    """Returns for each region on a device why it goes back to the host, or `None` to keep it.

    Regions that pass values to each other without a copy have one decision. It compares estimates:
    the regions' times and their copies on the device, with the host's times. An unknown time on the
    device counts as 0, so that copies alone can decide; without the host's times, the regions stay.
    """
    on_devices = {one.name: one for one in backends if one.memory_space != HOST_SPACE}
    functions = {
        function.sym_name.data: function
        for function in module.ops
        if isinstance(function, FuncOp) and region_compiler(function) in on_devices
    }
    decisions: dict[FuncOp, str | None] = {}
    for block in host_blocks(module) if functions else ():
        for connected in _connected(_regions(block, functions, on_devices, context)):
            reason = _reason(connected)
            decisions.update((region.function, reason) for region in connected)
    return decisions


def _regions(
    block: Block,
    functions: Mapping[str, FuncOp],
    backends: Mapping[str, Backend],
    context: CodegenContext,
) -> Iterator[_Region]:
    for op in block.ops:
        function = functions.get(op.callee.root_reference.data) if isinstance(op, CallOp) else None
        if isinstance(op, CallOp) and function is not None:
            backend = backends[str(region_compiler(function))]
            yield _Region(function, op, backend, estimated_times(function, backend, context))


def _connected(regions: Iterable[_Region]) -> list[list[_Region]]:
    """Returns the regions of a block in groups that pass values to each other on a device."""
    groups: dict[Operation, list[_Region]] = {}
    for region in regions:
        group = [region]
        for operand in region.call.operands:
            owner = viewed(operand).owner
            source = groups.get(owner) if isinstance(owner, Operation) else None
            if source is not None and source is not group and _share_a_device(source[0], region):
                group = [*source, *group]
                groups.update((one.call, group) for one in group)
        groups[region.call] = group
    return list({id(group): group for group in groups.values()}.values())


def _share_a_device(one: _Region, other: _Region) -> bool:
    return one.backend.memory_space == other.backend.memory_space


def _reason(regions: Sequence[_Region]) -> str | None:
    """Returns why connected regions go back to the host, or `None`; notes their times."""
    for region in regions:
        set_times(region.function, region.times)
    host = [region.times.host_milliseconds for region in regions]
    known = [time for time in host if time is not None]
    if len(known) < len(host):
        return None
    sizes = list(_crossing_bytes(regions))
    copies = _copy_milliseconds(regions[0].backend, sizes)
    device = copies + sum(region.times.backend_milliseconds or 0.0 for region in regions)
    if sum(known) >= ASSUMED.place_margin * device:
        return None
    return (
        f"estimated {sum(known):.3f} ms on the host, {device:.3f} ms on"
        f" {regions[0].backend.memory_space} with {len(sizes)} copies of {sum(sizes):,} bytes"
    )


def _copy_milliseconds(backend: Backend, sizes: Iterable[int]) -> float:
    """Estimates the time of copies; an unknown time counts as 0."""
    device = device_of(backend)
    assert device is not None
    return sum(device.copy_milliseconds(size) or 0.0 for size in sizes)


def _crossing_bytes(regions: Sequence[_Region]) -> Iterator[int]:
    """Yields the size of each value that regions get from elsewhere, or others get from them."""
    calls = {region.call for region in regions}
    operands = (viewed(operand) for call in calls for operand in call.operands)
    inputs = dict.fromkeys(value for value in operands if value.owner not in calls)
    results = (result for call in calls for result in call.results)
    outputs = (value for value in results if not calls.issuperset(users(value)))
    yield from (bytes_of([value]) for value in (*inputs, *outputs))
