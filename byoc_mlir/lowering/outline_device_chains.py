"""The pass `outline-device-chains`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.abi import ARENA_BYTES, CHAIN, CONTEXT_SLOTS, DEVICE, RECORDS, chain_slots
from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.device_ops import region_spaces
from byoc_mlir.dialects.dynamic_buffers import PlaceOp, View
from byoc_mlir.lowering.region_calls import device_functions, int_attribute

_ADDRESSES = PlaceOp | View | arith.ConstantOp | memref.GetGlobalOp
"""Ops that compute addresses, and may stand between the calls of a chain."""


class OutlineDeviceChains(ModulePass):
    """Moves calls of a device's regions that follow each other to a function of the host.

    A device that records work records the whole function, and replays it while the addresses stay
    the same. Each chain has slots in the device's context.

    ```mlir
    func.call @npu_main_0(%x, %0) : (memref<4xf32, "npu">, memref<4xf32, "npu">) -> ()
    func.call @npu_main_1(%0, %y) : (memref<4xf32, "npu">, memref<4xf32, "npu">) -> ()
    // becomes
    func.call @npu_chain_0(%x, %0, %y) : (…) -> ()
    ```
    """

    name = "outline-device-chains"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        devices = {
            _name(declaration): declaration
            for declaration in device_functions(op)
            if RECORDS in declaration.attributes
        }
        spaces = region_spaces(op)
        regions = {name: space for name, space in spaces.items() if space in devices}
        chains = [chain for block in host_blocks(op) for chain in _chains(block, regions)]
        for number, chain in enumerate(chains):
            device = regions[_callee(chain[0])]
            op.body.block.add_op(_outlined(chain, f"{device}_chain_{number}", devices[device]))


def _chains(block: Block, regions: Mapping[str, str]) -> Iterator[Sequence[func.CallOp]]:
    """Yields the longest sequences of calls for one device with nothing of the host between."""
    chain: list[func.CallOp] = []
    for op in block.ops:
        if isinstance(op, _ADDRESSES):
            continue
        space = regions.get(_callee(op))
        if chain and space != regions[_callee(chain[0])]:
            yield chain
            chain = []
        if space is not None:
            assert isinstance(op, func.CallOp)
            chain.append(op)
    if chain:
        yield chain


def _outlined(chain: Sequence[func.CallOp], name: str, device: func.FuncOp) -> func.FuncOp:
    """Replaces a chain by a call of a new function, which gets slots in the device's context."""
    buffers = list(dict.fromkeys(value for call in chain for value in call.arguments))
    types = [value.type for value in buffers]
    block = Block(arg_types=types)
    inside: Mapping[SSAValue, SSAValue] = dict(zip(buffers, block.args, strict=True))
    outside = chain[0].parent_block()
    assert outside is not None
    outside.insert_op_after(func.CallOp(name, buffers, []), chain[-1])
    for call in chain:
        call.detach()
        call.operands = [inside[value] for value in call.arguments]
    block.add_ops([*chain, func.ReturnOp()])
    slot = int_attribute(device, CONTEXT_SLOTS)
    device.attributes[CONTEXT_SLOTS] = IntegerAttr(slot + chain_slots(len(buffers)), i64)
    function = func.FuncOp(name, FunctionType.from_lists(types, []), Region(block), "private")
    function.attributes[ARENA_BYTES] = IntegerAttr(0, i64)
    function.attributes[CHAIN] = DictionaryAttr(
        {"device": StringAttr(_name(device)), "slot": IntegerAttr(slot, i64)}
    )
    return function


def _name(declaration: func.FuncOp) -> str:
    name = declaration.attributes[DEVICE]
    assert isinstance(name, StringAttr)
    return name.data


def _callee(op: Operation) -> str:
    """Returns the name of the function that a call calls, or "" for another op."""
    return op.callee.root_reference.data if isinstance(op, func.CallOp) else ""
